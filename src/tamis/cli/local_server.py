"""A server for one page, by default on the loopback address: it answers requests to its own name, and makes no others.

Style and script are inline, and the policy of the page limits the browser to them and to this server. A request by
another site's name for this address is rejected, and so is a request that a page of another origin makes.
"""

from __future__ import annotations

import base64
import hashlib
import io
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from string import Template
from typing import Any


class LocalHandler(BaseHTTPRequestHandler):
    """Answers requests; a subclass of it is made for each page."""

    page: Any
    policy: str
    timeout = 10.0  # seconds for the whole request, and for each part of the answer

    def setup(self) -> None:
        """Open the connection; the time for the request runs from now on."""
        super().setup()
        self.rfile = io.BufferedReader(_RequestBytes(self.connection, self.timeout))

    def reject_foreign(self) -> bool:
        """Answer 403 and return True if the request does not come from the page itself."""
        names, host = ("127.0.0.1", "localhost", self.page.host), self.headers.get("Host", "")
        own = {f"{name}:{self.server.server_port}" for name in names}  # type: ignore[attr-defined]
        # A server on all addresses of a machine cannot know its names.
        foreign = host not in own and self.page.host != "0.0.0.0"
        foreign |= self.headers.get("Origin") not in (None, f"http://{host}")
        if foreign:
            self.send_error(403)
        return foreign

    def answer(self, code: int, kind: str, body: bytes | None) -> None:
        """Send an answer; without a body, only its headers."""
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", self.policy)
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        if body is not None:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


class _RequestBytes(io.RawIOBase):
    """The bytes of a request, which must all arrive in time, however slowly each of them is sent."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection, self._seconds, self._until = connection, seconds, time.monotonic() + seconds

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what has arrived, waiting for it until the time is over."""
        self._connection.settimeout(max(self._until - time.monotonic(), 1e-3))
        try:
            return self._connection.recv_into(buffer)
        finally:
            self._connection.settimeout(self._seconds)


class _LocalServer(ThreadingHTTPServer):
    """A server whose clients may leave at any time."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the traceback of an error, unless it is that of the connection."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class LocalPage:
    """A page of this package, NAME.html with NAME.css and NAME.js, on a server.

    Parameters
    ----------
    name : str
    handler : type
        Subclass of `LocalHandler`, whose `page` is the object.
    port : int
        0: a free port.
    host : str
        Address to listen on.
    **texts
        HTML in the places of their names.

    Attributes
    ----------
    address : str
        URL of the page.
    """

    def __init__(
        self, name: str, handler: type[LocalHandler], port: int, host: str = "127.0.0.1", **texts: str
    ) -> None:
        folder = files("tamis.cli")
        source, style, script = (
            folder.joinpath(f"{name}.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js")
        )
        self.source = Template(source).substitute(texts, style=style, script=script).encode()
        policy = (
            f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; connect-src 'self';"
            " img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        self._server = _LocalServer((host, port), type("_", (handler,), {"page": self, "policy": policy}))
        self.host = host
        self.address = f"http://{host}:{self._server.server_address[1]}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

"""A server on the loopback address for one page: it answers requests to its own name, and the page makes no others.

Style and script are inline, and the policy of the page limits the browser to them and to this server. A request by
another site's name for this address is rejected, and so is a request that a page of another origin makes.
"""

from __future__ import annotations

import base64
import hashlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

__all__ = ["LocalHandler", "content_policy", "page_source", "start_server"]


class LocalHandler(BaseHTTPRequestHandler):
    """Answers requests; subclasses set the policy of the page."""

    policy: str

    def reject_foreign(self) -> bool:
        """Answer 403 and return True if the request does not come from the page itself."""
        own = {f"{name}:{self.server.server_port}" for name in ("127.0.0.1", "localhost")}  # type: ignore[attr-defined]
        origin = self.headers.get("Origin")
        foreign = self.headers.get("Host") not in own or (
            origin is not None and origin not in {f"http://{one}" for one in own}
        )
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


def start_server(handler: type[LocalHandler], port: int) -> tuple[ThreadingHTTPServer, str]:
    """Return a server on the loopback address that has not started to serve, and its URL; port 0 is a free one."""
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    return server, f"http://127.0.0.1:{server.server_address[1]}/"


def page_source(name: str) -> str:
    """Return the text of a style or script of this package."""
    return files("tamis.cli").joinpath(name).read_text(encoding="utf-8")


def content_policy(style: str, script: str) -> str:
    """Return the content security policy of a page with this style and script.

    >>> content_policy("", "")[:18]
    "default-src 'none'"
    """
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; connect-src 'self'; img-src data:;"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

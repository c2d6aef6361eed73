import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tamis.watch import Delivery

ALERT = {"row": 5, "feature": "age", "value": float("nan"), "message": 'it\'s "new"'}


@pytest.fixture
def server():
    """A webhook: it answers 200, but 500 at /broken and a redirect to / at /moved."""
    posted = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            code = {"/broken": 500, "/moved": 307}.get(self.path, 200)
            self.send_response(code)
            if code == 307:
                self.send_header("Location", "/")
            self.end_headers()

        def log_message(self, *args):
            pass

    httpd = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_address[1]}", posted
    httpd.shutdown()
    httpd.server_close()


def test_a_command_receives_the_alert_on_standard_input(tmp_path):
    path = tmp_path / "alert.json"
    assert Delivery(command=f"cat > {path}").send(ALERT) == []
    assert json.loads(path.read_text()) == ALERT | {"value": None}


def test_a_webhook_receives_the_alert(server):
    address, posted = server
    assert Delivery(webhook=f"{address}/alerts?key=1").send(ALERT) == []
    [(path, body)] = posted
    assert path == "/alerts?key=1"
    assert json.loads(body) == ALERT | {"value": None}


def test_what_fails_is_reported_and_raises_nothing(server):
    address, posted = server
    assert Delivery(webhook=f"{address}/broken").send(ALERT) == ["the webhook at 127.0.0.1 answered 500"]
    assert Delivery(webhook=f"{address}/moved").send(ALERT) == ["the webhook at 127.0.0.1 answered 307"]
    assert [path for path, _ in posted] == ["/broken", "/moved"]
    [failure] = Delivery(webhook="http://127.0.0.1:9/?key=secret").send(ALERT)
    assert "could not be reached" in failure
    assert "secret" not in failure
    assert "exit code 127" in Delivery(command="no-such-command 2>/dev/null").send(ALERT)[0]
    assert "longer than 0.1 seconds" in Delivery(command="sleep 1", timeout=0.1).send(ALERT)[0]


def test_is_off_by_default():
    assert Delivery().send(ALERT) == []


@pytest.mark.parametrize("url", ["ftp://a/b", "file:///etc/passwd", "example.com", "http://"])
def test_refuses_other_urls(url):
    with pytest.raises(ValueError, match="webhook must be a URL"):
        Delivery(webhook=url)

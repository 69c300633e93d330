"""A proxy in front of an object store that records requests, answers some with 503, and truncates
responses.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_BUSY = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code>'
    b"<Message>Please reduce your request rate.</Message></Error>"
)


class FaultProxy:
    """Serves on a free port of this host until close(). Any thread.

    `fails`: whether the request with this number is answered with 503. `delay_s`: before each
    response. `cuts`: whether the body of the response with this number is truncated. `on_request`:
    called with method and path before a request is forwarded.
    """

    def __init__(self, upstream: int):
        self.upstream = upstream
        self.fails: Callable[[int], bool] = lambda number: False
        self.cuts: Callable[[int], bool] = lambda number: False
        self.on_request: Callable[[str, str], None] = lambda method, path: None
        self.delay_s = 0.0
        self.requests: list[tuple[str, str]] = []
        self.failed = 0
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def note(self, method: str, path: str) -> int:
        """Records a request, and returns its number."""
        with self._lock:
            self.requests.append((method, path))
            return len(self.requests)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    proxy: FaultProxy
    protocol_version = "HTTP/1.1"

    def _forward(self) -> None:
        number = self.proxy.note(self.command, self.path)
        body = self._body()
        self.proxy.on_request(self.command, self.path)
        time.sleep(self.proxy.delay_s)
        if self.proxy.fails(number):
            self.proxy.failed += 1
            self._answer(503, [("Content-Type", "application/xml")], _BUSY)
            return
        upstream = http.client.HTTPConnection("127.0.0.1", self.proxy.upstream, timeout=60)
        try:
            own = ("transfer-encoding", "content-length", "expect", "connection")
            headers = {k: v for k, v in self.headers.items() if k.lower() not in own}
            headers["Content-Length"] = str(len(body))
            upstream.request(self.command, self.path, body, headers)
            found = upstream.getresponse()
            content = found.read()
            self._answer(found.status, found.getheaders(), content, self.proxy.cuts(number))
        finally:
            upstream.close()

    def _body(self) -> bytes:
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(
        self, status: int, headers: list[tuple[str, str]], body: bytes, cut: bool = False
    ) -> None:
        self.send_response_only(status)
        length = str(len(body))
        for name, value in headers:
            if name.lower() == "content-length" and self.command == "HEAD":
                length = value
            elif name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command == "HEAD":
            return
        if cut and len(body) > 1:
            self.proxy.failed += 1
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
            return
        self.wfile.write(body)

    def handle_expect_100(self) -> bool:
        return True  # _body() sends the response

    def log_message(self, *args: object) -> None:
        """Logs nothing."""

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_PATCH = _forward

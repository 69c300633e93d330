"""A training's page, which the driver serves on its host while the training runs.

Only requests with the secret in the page's link are answered; all others get "not found".
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hearth.monitoring.page import live_page

_HOST = "127.0.0.1"
# Host names in requests from browsers on this host or through a tunnel. Other names indicate DNS
# rebinding.
_NAMES = (_HOST, "localhost")
_IDLE_S = 10.0
# A page counts as open if it was fetched within this time. Stopping waits for an open page to fetch
# the final metrics.
_LOOKED_S = 5.0
_LAST_LOOK_S = 3.0

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class LivePage:
    """The server of a training's page, with its threads. A context manager, which calls close()."""

    def __init__(self, snapshot: Callable[[], dict[str, Any]]):
        """`snapshot` returns the page's data; it is called in the server's threads."""
        self._snapshot = snapshot
        self._token = secrets.token_urlsafe(32)
        self._looked = threading.Condition()
        self._last_look = float("-inf")
        self._server = _Server((_HOST, 0), self._answer)
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="hearth-page", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The page's address; its random path serves as the password."""
        return f"http://{_HOST}:{self._server.server_address[1]}/{self._token}/"

    def close(self) -> None:
        """Stops the server, after a short wait for an open page to fetch the final metrics."""
        begin = time.monotonic()
        with self._looked:
            if begin - self._last_look < _LOOKED_S:
                self._looked.wait_for(lambda: self._last_look > begin, _LAST_LOOK_S)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> LivePage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, path: str) -> tuple[str, bytes] | None:
        """The content type and the content for a path; None if the path is unknown."""
        _, token, *rest = path.split("/", 2) if path.count("/") > 1 else ("", "", "")
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return None
        if rest == [""]:
            return "text/html; charset=utf-8", live_page().encode()
        if rest == ["data"]:
            began = time.monotonic()
            data = json.dumps(self._snapshot(), allow_nan=False).encode()
            with self._looked:
                self._last_look = began
                self._looked.notify_all()
            return "application/json", data
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(
        self, address: tuple[str, int], answer: Callable[[str], tuple[str, bytes] | None]
    ) -> None:
        self.answer = answer
        super().__init__(address, _Request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores errors of disconnected browsers, which would clutter the driver's log."""


class _Request(BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = "hearth", ""
    timeout = _IDLE_S

    def do_GET(self) -> None:
        name = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        found = self.server.answer(self.path) if name in _NAMES else None
        kind, body = found or ("text/plain", b"not found\n")
        self.send_response(200 if found else 404)
        for header, value in _HEADERS.items():
            self.send_header(header, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Logs nothing, because the link contains a secret."""

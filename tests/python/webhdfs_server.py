"""A stand-in for HDFS over HTTP: NameNode and DataNode on one port, files in memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit


class WebHdfs:
    """A context manager that runs the server; `files` maps paths to contents."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        # A hook (operation, path) called before a request is executed. It returns the response
        # (status, body), None to drop the connection, or NotImplemented for the normal response.
        # `after` is the same, called once the request has been executed.
        self.before: Callable[[str, str], object] = lambda operation, path: NotImplemented
        self.after: Callable[[str, str], object] = self.before
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.authority = f"127.0.0.1:{self._server.server_port}"
        self.uri = f"webhdfs://{self.authority}"

    def __enter__(self) -> WebHdfs:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _statuses(self, folder: str) -> list[dict[str, object]]:
        """Statuses of a folder's entries; a folder exists while there is a file below it."""
        head = f"{folder.rstrip('/')}/"
        inside = [name.removeprefix(head) for name in self.files if name.startswith(head)]
        folders = {name.partition("/")[0]: 0 for name in inside if "/" in name}
        files = {name: len(self.files[head + name]) for name in inside if "/" not in name}
        return [
            {
                "type": "FILE" if name in files else "DIRECTORY",
                "length": size,
                "modificationTime": 1,
                "pathSuffix": name,
            }
            for name, size in sorted({**folders, **files}.items())
        ]

    def answer(self, operation: str, path: str, query: dict[str, str], body: bytes) -> object:
        """Executes a request; returns status and body."""
        there = path in self.files
        if operation == "GETFILESTATUS" and there:
            size = len(self.files[path])
            return 200, _json("FileStatus", type="FILE", length=size, modificationTime=1)
        inside = sorted(name for name in self.files if name.startswith(f"{path.rstrip('/')}/"))
        if operation == "GETFILESTATUS" and inside:
            return 200, _json("FileStatus", type="DIRECTORY", length=0, modificationTime=1)
        if operation == "LISTSTATUS_BATCH" and inside:
            statuses = {"FileStatuses": {"FileStatus": self._statuses(path)}}
            return 200, _json("DirectoryListing", partialListing=statuses, remainingEntries=0)
        if operation == "MKDIRS":
            return 200, json.dumps({"boolean": True})
        if operation == "CREATE":
            self.files[path] = body
            return 201, ""
        if operation == "DELETE" and inside and query.get("recursive") == "true":
            return 200, json.dumps({"boolean": [self.files.pop(name) for name in inside] != []})
        if operation == "RENAME" and inside and not there:
            for name in inside:
                self.files[query["destination"] + name.removeprefix(path)] = self.files.pop(name)
            return 200, json.dumps({"boolean": True})
        if operation == "DELETE":
            return 200, json.dumps({"boolean": self.files.pop(path, None) is not None})
        if not there:
            return 404, refusal("FileNotFoundException")
        if operation == "APPEND":
            self.files[path] += body
        elif operation == "RENAME":
            self.files[query["destination"]] = self.files.pop(path)
        elif operation == "OPEN":
            start = int(query["offset"])
            return 200, self.files[path][start : start + int(query["length"])]
        return 200, ""


def refusal(exception: str) -> str:
    return _json("RemoteException", exception=exception, message="refused")


def _json(name: str, **members: object) -> str:
    return json.dumps({name: members})


def _handler(hdfs: WebHdfs) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # headers and body are two writes

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(url.query).items()}
            path = unquote(url.path).partition("/webhdfs/v1")[2]
            operation = query["op"]
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            has_data = operation in ("OPEN", "CREATE", "APPEND")
            if has_data and not url.path.startswith("/data"):
                self.reply(307, "", Location=f"http://{hdfs.authority}/data{self.path}")
                return
            hdfs.asked.append(f"{operation} {path}")
            answer = hdfs.before(operation, path)
            if answer is NotImplemented:
                answer = hdfs.answer(operation, path, query, body)
                changed = hdfs.after(operation, path)
                answer = answer if changed is NotImplemented else changed
            if answer is None:
                self.close_connection = True
                return
            self.reply(*answer)

        do_PUT = do_POST = do_DELETE = do_GET

        def reply(self, status: int, body: str | bytes, **headers: str) -> None:
            body = body.encode() if isinstance(body, str) else body
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    return Handler

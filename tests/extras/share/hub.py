"""A stand-in for the Hugging Face hub on loopback: what its library asks to create, fill and read
repositories. The library must not use Xet (HF_HUB_DISABLE_XET).
"""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN = "hf_owner"
Answer = tuple[int, bytes, dict[str, str]]  # status, content, headers


@dataclass
class Repository:
    """commits: (id, files by name) from the first on."""

    private: bool = False
    commits: list[tuple[str, dict[str, bytes]]] = field(default_factory=list)

    @property
    def files(self) -> dict[str, bytes]:
        return self.commits[-1][1]

    def commit(self, files: dict[str, bytes]) -> str:
        self.commits.append((sha1(f"{len(self.commits)} {files}".encode()).hexdigest(), files))
        return self.commits[-1][0]


class Hub(ThreadingHTTPServer):
    """The server. address: for HF_ENDPOINT. short: files of which the last byte is never sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server_address[1]}"
        self.repositories: dict[str, Repository] = {}
        self.short: set[str] = set()


@contextmanager
def running_hub() -> Iterator[Hub]:
    """Yields a server that ends with the block."""
    with Hub() as hub:
        threading.Thread(target=hub.serve_forever, args=[0.02]).start()
        try:
            yield hub
        finally:
            hub.shutdown()


class Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self._answer(*self._read())

    def do_POST(self) -> None:
        self._answer(*self._write())

    def _read(self) -> Answer:
        """api/models/USER/NAME[/revision/R], api/models/USER/NAME/tree/R,
        USER/NAME/resolve/R/FILE.
        """
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
        is_file = parts[2:3] == ["resolve"]
        name = "/".join(parts[:2] if is_file else parts[2:4])
        revision = parts[3] if is_file else (parts[5] if len(parts) > 5 else "main")
        repository, owns = self.server.repositories.get(name), self._is_owner()
        if repository is None or (repository.private and not owns):
            return error(404 if owns else 401, "RepoNotFound")
        commit = repository.commits[-1][0] if revision == "main" else revision
        if (files := dict(repository.commits).get(commit)) is None:
            return error(404, "RevisionNotFound")
        if is_file:
            if (content := files.get(file := "/".join(parts[4:]))) is None:
                return error(404, "EntryNotFound")
            is_short = self.command == "GET" and file in self.server.short
            etag = f'"{sha1(content).hexdigest()}"'
            headers = {"X-Repo-Commit": commit, "ETag": etag}
            return 200, content[:-1] if is_short else content, headers
        if parts[4:5] == ["tree"]:
            return as_json(
                [
                    {"type": "file", "path": path, "size": len(content), "oid": "0"}
                    for path, content in files.items()
                ]
            )
        siblings = [{"rfilename": path} for path in files]
        return as_json(
            {"id": name, "sha": commit, "private": repository.private, "siblings": siblings}
        )

    def _write(self) -> Answer:
        """api/repos/create, api/models/USER/NAME/preupload/main,
        api/models/USER/NAME/commit/main.
        """
        path = urlsplit(self.path).path.strip("/").split("/")
        lines = [json.loads(line) for line in self._read_body().splitlines()]
        if path == ["api", "validate-yaml"]:
            return as_json({"errors": [], "warnings": []})
        if not self._is_owner():
            return error(401, "", "Invalid credentials in Authorization header")
        if path == ["api", "repos", "create"]:
            return self._create(lines[0])
        name = "/".join(path[2:4])
        if path[4] == "preupload":
            files = lines[0]["files"]
            modes = [{**file, "uploadMode": "regular", "shouldIgnore": False} for file in files]
            return as_json({"files": modes})
        repository = self.server.repositories[name]
        contents = dict(repository.files)
        for operation in lines[1:]:
            value = operation["value"]
            if operation["key"] == "file":
                contents[value["path"]] = base64.b64decode(value["content"])
            else:
                del contents[value["path"]]
        commit = repository.commit(contents)
        url = f"{self.server.address}/{name}/commit/{commit}"
        return as_json({"success": True, "commitOid": commit, "commitUrl": url})

    def _create(self, body: dict[str, Any]) -> Answer:
        name = f"{body.get('organization') or 'me'}/{body['name']}"
        url = {"url": f"{self.server.address}/{name}", "name": name}
        if name in self.server.repositories:
            return as_json({**url, "error": "You already created this model repo"}, 409)
        private = body.get("private") is True or body.get("visibility") == "private"
        self.server.repositories[name] = repository = Repository(private)
        repository.commit({".gitattributes": b""})
        return as_json(url)

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        content = b""
        while size := int(self.rfile.readline(), 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content

    def _is_owner(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def _answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def as_json(value: Any, status: int = 200) -> Answer:
    return status, json.dumps(value).encode(), {"Content-Type": "application/json"}


def error(status: int, code: str, message: str = "") -> Answer:
    headers = {"X-Error-Code": code, "X-Error-Message": message}
    return status, b"{}", {name: value for name, value in headers.items() if value}

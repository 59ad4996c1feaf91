"""A stand-in for the Hugging Face hub on loopback: the requests that its library sends to create,
fill and read repositories.

It speaks the real protocol with large files by git LFS; the library must not use Xet
(HF_HUB_DISABLE_XET).
"""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

TOKEN = "hf_owner"


@dataclass
class Repository:
    """commits: (id, files by name) from the first on; files of LFS hold the SHA-256 of their
    content.
    """

    private: bool = False
    commits: list[tuple[str, dict[str, bytes]]] = field(default_factory=list)
    large: set[str] = field(default_factory=set)

    @property
    def files(self) -> dict[str, bytes]:
        """Name -> content, at the last commit."""
        return self.commits[-1][1]

    def commit(self, files: dict[str, bytes]) -> str:
        listing = repr(
            (
                len(self.commits),
                sorted(
                    (name, hashlib.sha1(content).hexdigest()) for name, content in files.items()
                ),
            )
        )
        self.commits.append((hashlib.sha1(listing.encode()).hexdigest(), files))
        return self.commits[-1][0]

    def at(self, revision: str) -> tuple[str, dict[str, bytes]] | None:
        if revision == "main":
            return self.commits[-1]
        return next(
            (commit for commit in self.commits if revision and commit[0].startswith(revision)), None
        )


@dataclass
class Hub:
    """The server.

    Attributes:
        address: for HF_ENDPOINT. storage: the same server under another name, as large files come
            from another host.
        uploads: contents by SHA-256, of large files.
        broken: names of files whose next download breaks off in the middle.
        short: names of files of which the last byte is never sent.
        requests: method and path of each request.
    """

    address: str = ""
    storage: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    uploads: dict[str, bytes] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    short: set[str] = field(default_factory=set)
    requests: list[str] = field(default_factory=list)


@contextmanager
def running_hub() -> Iterator[Hub]:
    """Yields a server that ends with the block."""
    hub = Hub()

    class BoundHandler(Handler):
        pass

    BoundHandler.hub = hub
    with ThreadingHTTPServer(("127.0.0.1", 0), BoundHandler) as server:
        server.daemon_threads = True
        hub.address, hub.storage = (
            f"http://{host}:{server.server_address[1]}" for host in ("127.0.0.1", "localhost")
        )
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()


class Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.hub.requests.append(f"{self.command} {self.path}")
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
        if parts[:2] == ["api", "models"]:
            self._send_info(
                "/".join(parts[2:4]), parts[5] if parts[4:5] == ["revision"] else "main"
            )
        elif parts[0] == "large":
            assert "Authorization" not in self.headers  # the access token is for the hub alone
            self._send_content(self.hub.uploads[parts[1]], parts[2])
        elif parts[2:3] == ["resolve"]:
            self._resolve("/".join(parts[:2]), parts[3], "/".join(parts[4:]))
        else:
            self._send_error(404, "EntryNotFound")

    def do_PUT(self) -> None:
        content = self._read_body()
        digest = self.path.rpartition("/")[2]
        assert hashlib.sha256(content).hexdigest() == digest
        self.hub.uploads[digest] = content
        self._send({})

    def do_POST(self) -> None:
        self.hub.requests.append(f"{self.command} {self.path}")
        path = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
        body = self._read_body()
        if path == ["api", "validate-yaml"]:
            self._validate(json.loads(body)["content"])
        elif not self._is_owner():
            self._send_error(401, "", "Invalid credentials in Authorization header")
        elif path == ["api", "repos", "create"]:
            self._create(json.loads(body))
        elif path[-1] == "batch":
            self._send_upload_addresses(json.loads(body))
        elif (repository := self.hub.repositories.get("/".join(path[2:4]))) is None:
            self._send_error(404, "RepoNotFound")
        elif path[4] == "preupload":
            self._send_upload_modes(repository, json.loads(body))
        else:
            self._commit(
                "/".join(path[2:4]), repository, [json.loads(line) for line in body.splitlines()]
            )

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

    def _find(self, name: str, revision: str) -> tuple[Repository, str, dict[str, bytes]] | None:
        """The repository at a revision; None after an answer that says what is missing."""
        repository = self.hub.repositories.get(name)
        if repository is None or (repository.private and not self._is_owner()):
            self._send_error(401 if not self._is_owner() else 404, "RepoNotFound")
            return None
        if (commit := repository.at(revision)) is None:
            self._send_error(404, "RevisionNotFound")
            return None
        return repository, *commit

    def _create(self, body: dict[str, Any]) -> None:
        name = f"{body.get('organization') or 'me'}/{body['name']}"
        if name in self.hub.repositories:
            self._send(
                {
                    "error": "You already created this model repo",
                    "url": f"{self.hub.address}/{name}",
                },
                409,
            )
            return
        private = body.get("private") is True or body.get("visibility") == "private"
        self.hub.repositories[name] = repository = Repository(private)
        repository.commit({".gitattributes": b"*.safetensors filter=lfs\n"})
        self._send({"url": f"{self.hub.address}/{name}", "name": name})

    def _validate(self, content: str) -> None:
        try:
            metadata = yaml.safe_load(content.split("---\n")[1])
            assert isinstance(metadata["language"], list)
            self._send({"errors": [], "warnings": []})
        except (yaml.YAMLError, LookupError, TypeError, AssertionError):
            self._send({"errors": [{"message": "bad metadata"}], "warnings": []}, 400)

    def _send_info(self, name: str, revision: str) -> None:
        if (found := self._find(name, revision)) is not None:
            repository, commit, files = found
            siblings = [
                {"rfilename": path, "size": len(content), "blobId": "0"}
                for path, content in files.items()
            ]
            self._send(
                {
                    "id": name,
                    "sha": commit,
                    "private": repository.private,
                    "tags": [],
                    "siblings": siblings,
                }
            )

    def _send_upload_modes(self, repository: Repository, body: dict[str, Any]) -> None:
        files = [
            {
                "path": each["path"],
                "uploadMode": "lfs" if each["path"].endswith(".safetensors") else "regular",
                "shouldIgnore": False,
            }
            for each in body["files"]
        ]
        self._send({"files": files})

    def _send_upload_addresses(self, body: dict[str, Any]) -> None:
        objects = [
            {**each, "actions": {"upload": {"href": f"{self.hub.address}/large/{each['oid']}"}}}
            if each["oid"] not in self.hub.uploads
            else each
            for each in body["objects"]
        ]
        self._send({"transfer": "basic", "objects": objects})

    def _commit(self, name: str, repository: Repository, lines: list[dict[str, Any]]) -> None:
        header, *operations = lines
        if header["value"].get("parentCommit") not in (None, repository.commits[-1][0]):
            self._send_error(412, "", "A commit has happened since")
            return
        files = dict(repository.files)
        for operation in operations:
            kind, value = operation["key"], operation["value"]
            if kind == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif kind == "lfsFile":
                files[value["path"]] = self.hub.uploads[value["oid"]]
                repository.large.add(value["path"])
            else:
                assert kind == "deletedFile"
                del files[value["path"]]
        commit = repository.commit(files)
        self._send(
            {
                "success": True,
                "commitOid": commit,
                "commitUrl": f"{self.hub.address}/{name}/commit/{commit}",
            }
        )

    def _resolve(self, name: str, revision: str, path: str) -> None:
        if (found := self._find(name, revision)) is None:
            return
        repository, commit, files = found
        if path not in files:
            self._send_error(404, "EntryNotFound", commit=commit)
            return
        content = files[path]
        digest = hashlib.sha256(content).hexdigest()
        if path in repository.large:
            self.hub.uploads[digest] = content
            headers = {
                "X-Repo-Commit": commit,
                "X-Linked-Size": str(len(content)),
                "X-Linked-ETag": f'"{digest}"',
            }
            self._answer(
                302, b"", {**headers, "Location": f"{self.hub.storage}/large/{digest}/{path}"}
            )
        else:
            self._send_content(content, path, {"X-Repo-Commit": commit, "ETag": f'"{digest[:40]}"'})

    def _send_content(
        self, content: bytes, path: str, headers: dict[str, str] | None = None
    ) -> None:
        if self.command == "GET" and path in self.hub.broken:
            self.hub.broken.discard(path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
            return
        if self.command == "GET" and path in self.hub.short:
            content = content[:-1]
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        if start:
            headers = {
                **(headers or {}),
                "Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}",
            }
        self._answer(206 if start else 200, content[start:], headers or {})

    def _send(self, value: Any, status: int = 200) -> None:
        self._answer(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send_error(self, status: int, code: str, message: str = "", *, commit: str = "") -> None:
        headers = {"X-Error-Code": code, "X-Error-Message": message, "X-Repo-Commit": commit}
        self._answer(
            status,
            json.dumps({"error": message}).encode(),
            {name: value for name, value in headers.items() if value},
        )

    def _answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

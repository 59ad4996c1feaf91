"""nmt.data.download: downloads from a local server."""

import re
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from nmt.data import download
from nmt.data.download import cache_path, fetch
from nmt.errors import DataError

CONTENT = b"Hi.\tHallo!\n" * 1000


class Server(ThreadingHTTPServer):
    """Fails as scripted first, once per request: with a status, or with "short", a body that breaks
    off.
    """

    faults: list[int | str]
    requests: list[tuple[str, str]]

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests.append((self.path, self.headers["User-Agent"]))
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/to/"))
            self.end_headers()
            return
        fault = self.server.faults.pop(0) if self.server.faults else None
        self.send_response(fault if isinstance(fault, int) else 200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[:100] if fault else CONTENT)

    def log_request(self, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as made:
        made.faults, made.requests = [], []
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("pooch.utils.os_cache", lambda name: tmp_path / name)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_a_file_is_downloaded_once_and_under_its_name(server: Server) -> None:
    url = server.url("/anki/deu-eng.zip?x=1")
    path = fetch(url)
    assert path == cache_path(url)
    assert path.name == "deu-eng.zip"
    assert path.read_bytes() == CONTENT
    assert fetch(url) == path
    assert len(server.requests) == 1
    assert server.requests[0][1].startswith("nmt/")


@pytest.mark.parametrize("faults", [[503], ["short"], [500, "short", 429]])
def test_a_failing_server_is_retried(server: Server, faults: list[int | str]) -> None:
    server.faults = list(faults)
    assert fetch(server.url("/deu.zip")).read_bytes() == CONTENT
    assert len(server.requests) == len(faults) + 1


def assert_advice(url: str, reason: str) -> None:
    with pytest.raises(DataError) as caught:
        fetch(url)
    advice = f"download it yourself and put it at {cache_path(url)}, or set data.source.path"
    assert re.fullmatch(
        rf"cannot download {re.escape(url)} \({reason}\); {re.escape(advice)}", str(caught.value)
    )
    assert not cache_path(url).exists()


@pytest.mark.parametrize(
    ("fault", "reason", "n_requests"),
    [
        (404, "404 Not Found", 1),
        (503, "503 Server Error: Service Unavailable for url: .*", 1 + download.N_RETRIES),
        ("short", ".*IncompleteRead.*", 1 + download.N_RETRIES),
    ],
)
def test_a_server_that_keeps_failing_is_given_up(
    server: Server, cache: Path, fault: int | str, reason: str, n_requests: int
) -> None:
    server.faults = [fault] * 10
    assert_advice(server.url("/deu.zip"), reason)
    assert len(server.requests) == n_requests
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_without_a_connection_it_says_where_to_put_the_file_and_then_uses_it() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/deu.zip"
    assert_advice(url, "no connection")
    cache_path(url).write_bytes(b"by hand")
    assert fetch(url).read_bytes() == b"by hand"


def test_an_address_that_is_not_safe_needs_a_hash(server: Server) -> None:
    text = (
        r"^http://example\.org/deu\.zip: http is not safe; use https, or give data\.source\.sha256 "
        "to check the file$"
    )
    with pytest.raises(DataError, match=text):
        fetch(server.url("/to/http://example.org/deu.zip"))
    assert fetch(server.url("/to//deu.zip"), is_hashed=True).read_bytes() == CONTENT

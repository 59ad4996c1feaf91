"""Connections of clients that are slow, send too much, or send what is no request. The server has a
small application.
"""

import http.client
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

pytest.importorskip("uvicorn", reason="needs nmt[serve]")

import uvicorn
from starlette.types import Receive, Scope, Send

from nmt.extras.serve import protocol
from nmt.extras.serve.guard import Guard
from nmt.extras.serve.measurements import Measurements
from nmt.extras.serve.protocol import MAX_HEADER_BYTES, BoundedProtocol

SOON = 0.05  # the limit of what must end
SECOND = 1.0  # the limit of what must end, after something else that must come in time
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\n"


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the body of the request; at /forever never; at /large with 50 MB."""
    while scope["path"] == "/forever":
        if (await receive())["type"] == "http.disconnect":
            return
    body = b"x" * 50_000_000 if scope["path"] == "/large" else (await receive()).get("body", b"")
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-length", str(len(body)).encode())],
        }
    )
    await send({"type": "http.response.body", "body": body})


@contextmanager
def serving() -> Iterator[tuple[uvicorn.Server, tuple[str, int]]]:
    guarded = Guard(
        app, hosts=None, rate_limit=None, max_body=10**6, measurements=Measurements(), paths=()
    )
    config = uvicorn.Config(
        guarded,
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        timeout_keep_alive=1000,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield server, listener.getsockname()
        finally:
            server.should_exit = True
            thread.join()


def read_all(client: socket.socket) -> bytes:
    """What comes until the server ends the connection."""
    content = b""
    try:
        while block := client.recv(1 << 16):
            content += block
    except ConnectionError:
        pass
    return content


def answers_of(request: bytes) -> list[tuple[bytes, bytes]]:
    """(status, body) of each answer, until the connection ends."""
    with serving() as (_, address), socket.create_connection(address, timeout=60) as client:
        client.sendall(request)
        content = read_all(client)
    parts = []
    while content:
        head, _, rest = content.partition(b"\r\n\r\n")
        (length,) = [
            int(line.split()[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length")
        ]
        parts.append((head.split()[1], rest[:length]))
        content = rest[length:]
    return parts


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX: ", GET + b"GET / HTTP/1.1\r\n"]
)
def test_headers_that_do_not_arrive(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEADER_SECONDS", SECOND if sent.startswith(GET) else SOON)
    with serving() as (_, address), socket.create_connection(address, timeout=60) as client:
        client.sendall(sent)
        assert read_all(client).count(b"200 OK") == sent.startswith(GET)


def test_an_answer_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedProtocol, "exchange_seconds", SOON)
    with serving() as (_, address), socket.create_connection(address, timeout=60) as client:
        client.sendall(b"GET /forever HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_all(client) == b""


def test_an_answer_that_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory is free again, although the client stays."""
    monkeypatch.setattr(BoundedProtocol, "exchange_seconds", SOON)
    monkeypatch.setattr(protocol, "HEADER_SECONDS", SECOND)
    with serving() as (server, address), socket.create_connection(address, timeout=60) as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        until(lambda: server.server_state.total_requests == 1)
        until(lambda: not server.server_state.connections)
        assert len(read_all(client)) < 50_000_000


def test_connections_that_are_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MAX_CONNECTIONS", 3)
    with serving() as (server, address):
        idle = [socket.create_connection(address, timeout=60) for _ in range(3)]
        until(lambda: len(server.server_state.connections) == 3)
        with socket.create_connection(address, timeout=60) as client:
            head, _, body = read_all(client).partition(b"\r\n\r\n")
        assert (head.split()[1], json.loads(body)) == (
            b"503",
            {"error": "too many connections; wait 1 s"},
        )
        for client in idle:
            client.close()
        until(lambda: not server.server_state.connections)
        connection = http.client.HTTPConnection(*address, timeout=60)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        connection.close()


def connect_from(address: tuple[str, int], host: str) -> socket.socket:
    """A connection from another address of this machine."""
    return socket.create_connection(address, timeout=60, source_address=(host, 0))


@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere 127.0.0.2 is no address of this machine"
)
def test_one_address_does_not_keep_out_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither with slow headers, nor with an answer that it does not take, nor with a header that
    names other addresses.
    """
    monkeypatch.setattr(protocol, "MAX_CONNECTIONS", 4)
    monkeypatch.setattr(protocol, "MAX_CLIENT_CONNECTIONS", 3)
    with serving() as (server, address), ExitStack() as stack:
        slow = [stack.enter_context(connect_from(address, "127.0.0.1")) for _ in range(3)]
        slow[0].sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        slow[1].sendall(
            b"GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 127.0.0.9\r\nForwarded: for=127.0.0.9\r\n"
        )
        until(lambda: len(server.server_state.connections) == 3)
        for _ in range(20):  # they take no place
            with connect_from(address, "127.0.0.1") as client:
                head, _, body = read_all(client).partition(b"\r\n\r\n")
            assert head.split()[1] == b"429"
            assert b"Retry-After: 1" in head
            assert json.loads(body) == {
                "error": "more than 3 connections from one address; wait 1 s"
            }
            assert len(server.server_state.connections) == 3
        with connect_from(address, "127.0.0.2") as client:
            client.sendall(GET.replace(b"Host: x", b"Host: x\r\nConnection: close"))
            assert b" 200 " in read_all(client)
        slow[2].close()
        until(lambda: len(server.server_state.connections) == 2)
        with connect_from(address, "127.0.0.1") as client:
            client.sendall(GET.replace(b"Host: x", b"Host: x\r\nConnection: close"))
            assert b" 200 " in read_all(client)


@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 20_000,
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 10_000,
        b"GET /" + b"x" * 20_000,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        POST + b"Content-Length: +1\r\n\r\na",
        POST + b"Content-Length: 1, 2\r\n\r\nab",
        POST + b"Transfer-Encoding: x\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
        POST + b"X: a\rTransfer-Encoding: chunked\r\n\r\n",
        POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + GET,
    ],
)
def test_what_is_no_request_gets_one_error_and_ends_the_connection(request_: bytes) -> None:
    ((status, body),) = answers_of(request_)
    assert status in (b"400", b"501")
    assert set(json.loads(body)) == {"error"}


def test_garbage_after_the_beginning_of_an_answer_ends_the_connection() -> None:
    """Without a traceback in the server: pytest would report it."""
    answers = answers_of(POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\nxyz\r\n")
    assert [status for status, _ in answers] in ([], [b"400"])


def test_requests_in_one_connection_and_slow_bodies_are_answered() -> None:
    with serving() as (_, address), socket.create_connection(address, timeout=60) as client:
        client.sendall(GET + POST + b"Content-Length: 3\r\n\r\na")
        time.sleep(SOON)
        client.sendall(b"bc" + GET.replace(b"Host: x", b"Host: x\r\nConnection: close"))
        content = read_all(client)
    assert (content.count(b"200 OK"), content.count(b"abc")) == (3, 1)

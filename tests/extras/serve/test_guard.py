"""What the guard refuses, without a model."""

import asyncio

import pytest

pytest.importorskip("fastapi", reason="needs nmt[serve]")

from starlette.applications import Starlette
from starlette.types import Message

from nmt.extras.serve.guard import Guard, client_of
from nmt.extras.serve.measurements import Measurements


def status_of(method: str, **headers: str) -> object:
    """The status of a request with these headers."""

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        answers.append(message)

    answers: list[Message] = []
    guard = Guard(
        Starlette(), hosts=None, rate_limit=None, max_body=9, measurements=Measurements(), paths=[]
    )
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    asyncio.run(
        guard({"type": "http", "method": method, "path": "/", "headers": pairs}, receive, send)
    )
    return answers[0]["status"]


@pytest.mark.parametrize(
    "origin", ["http://[", "http://[x]", "http://l\ufeff[\u2581]", "null", "http://other"]
)
def test_malformed_origins_are_refused(origin: str) -> None:
    assert status_of("GET", host="localhost", origin=origin) == 403


@pytest.mark.parametrize("length", ["9" * 5000, "10", "-1", "x"])
def test_unusable_lengths_are_refused(length: str) -> None:
    assert status_of("POST", host="localhost", content_length=length) == 413


@pytest.mark.parametrize(
    ("host", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8::1:2:3:4:5", client_of(("2001:db8:0:1::", 1))),
        ("2001:db8:0:1:ffff::5", client_of(("2001:db8:0:1::", 1))),
        ("fe80::1%eth0", client_of(("fe80::2", 1))),
        ("/tmp/socket", "/tmp/socket"),
    ],
)
def test_who_is_one_client(host: str, client: str) -> None:
    assert client_of((host, 1)) == client
    assert client_of((host, 1)) != client_of(("2001:db8:0:2::", 1))
    assert client_of(None) == ""

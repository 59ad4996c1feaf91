"""What the guard refuses, without a model."""

import asyncio

import pytest

pytest.importorskip("fastapi", reason="needs nmt[serve]")

from starlette.applications import Starlette
from starlette.types import Message

from nmt.serve.guard import Guard
from nmt.serve.measurements import Measurements


def status_of(method: str, **headers: str) -> object:
    """The status of a request with these headers."""

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        answers.append(message)

    answers: list[Message] = []
    guard = Guard(Starlette(), hosts=None, rate_limit=None, max_body=9, measurements=Measurements(), paths=[])
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    asyncio.run(guard({"type": "http", "method": method, "path": "/", "headers": pairs}, receive, send))
    return answers[0]["status"]


@pytest.mark.parametrize("origin", ["http://[", "http://[x]", "http://l\ufeff[\u2581]", "null", "http://other"])
def test_malformed_origins_are_refused(origin: str) -> None:
    assert status_of("GET", host="localhost", origin=origin) == 403


@pytest.mark.parametrize("length", ["9" * 5000, "10", "-1", "x"])
def test_unusable_lengths_are_refused(length: str) -> None:
    assert status_of("POST", host="localhost", content_length=length) == 413

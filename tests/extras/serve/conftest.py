"""A small run, loaded once for all tests of the server."""

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import uvicorn
from fastapi.testclient import TestClient

from nmt.extras.serve.answers import ServedRun, TranslateTask
from nmt.extras.serve.app import Api
from nmt.extras.serve.command import load_runs
from nmt.extras.serve.routes import create_app
from nmt.extras.serve.schemas import Run
from nmt.texts.translator import TextTranslator
from tests.decoding.test_translator import make_translator

DOG, KING = "The dog sees the tree.", "The king loves the river."
HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
TOKEN = "a token of some length"
WAIT_SECONDS = 60  # on a busy machine


@pytest.fixture(scope="session")
def served(folder: Path) -> list[ServedRun]:
    return load_runs([folder / "run"] * 2, device="cpu", overrides=())


def tiny_run(**options: Any) -> ServedRun:
    """Of a model with random weights, which translates letters."""
    info = Run(name="", source="en", target="en", translations=3)
    return ServedRun(info, TextTranslator(make_translator(**options)))


def client_of(runs: Sequence[ServedRun], *, token: str | None = None, **limits: Any) -> TestClient:
    app = create_app(Api(runs, token=token, **limits), hosts=None if token else HOSTS)
    return TestClient(app, base_url="http://127.0.0.1:8000")


@pytest.fixture
def client(served: list[ServedRun]) -> Iterator[TestClient]:
    with client_of(served) as client:
        yield client


def error_of(response: Any, key: str = "error") -> tuple[int, str]:
    """The status and the error, which is the only content and has one line."""
    ((name, text),) = response.json().items()
    assert (name, text.count("\n")) == (key, 0)
    return response.status_code, text


@contextmanager
def serving(runs: Sequence[ServedRun], **settings: Any) -> Iterator[str]:
    """The address of a server in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(
            uvicorn.Config(create_app(Api(runs, **settings), hosts=None), log_config=None)
        )
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@dataclass
class Gate:
    """Translation waits for the event. started: the task of each batch, in order."""

    event: Event
    started: list[Any]


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate(Event(), [])
    translate = TranslateTask.__call__

    def wait(task: TranslateTask, requests: Any) -> Any:
        gate.started.append(task)
        assert gate.event.wait(WAIT_SECONDS)
        return translate(task, requests)

    monkeypatch.setattr(TranslateTask, "__call__", wait)
    yield gate
    gate.event.set()


def until(condition: Any) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)

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

from nmt.extras.serve.answers import ServedRun, TranslateTask

WAIT_SECONDS = 60  # on a busy machine


@pytest.fixture(scope="session")
def served(folder: Path) -> list[ServedRun]:
    from nmt.extras.serve.command import load_runs

    return load_runs([folder / "run"] * 2, device="cpu", overrides=())


@contextmanager
def serving(runs: Sequence[ServedRun], **settings: Any) -> Iterator[str]:
    """The address of a server in a thread."""
    import uvicorn

    from nmt.extras.serve.app import Api, create_app

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
    """Opens to translate. started: the task of each batch; tasks: of those that are translated."""

    event: Event
    started: list[Any]
    tasks: list[Any]

    def open(self) -> None:
        self.event.set()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate(Event(), [], [])
    translate = TranslateTask.__call__

    def wait(task: TranslateTask, requests: Any) -> Any:
        gate.started.append(task)
        assert gate.event.wait(WAIT_SECONDS)
        gate.tasks.append(task)
        return translate(task, requests)

    monkeypatch.setattr(TranslateTask, "__call__", wait)
    yield gate
    gate.open()


def until(condition: Any) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)

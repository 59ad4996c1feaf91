"""A small run, loaded once for all tests of the server."""

import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nmt.extras.serve.answers import ServedRun


@pytest.fixture(scope="session")
def served(folder: Path) -> list[ServedRun]:
    from nmt.extras.serve.command import load_runs

    return load_runs([folder / "run"] * 2, device="cpu", overrides=())


@contextmanager
def serving(runs: Sequence[ServedRun], limits: Mapping[str, Any], **settings: Any) -> Iterator[str]:
    """The address of a server in a thread."""
    import uvicorn

    from nmt.extras.serve.app import create_app

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(
            uvicorn.Config(create_app(runs, **limits, **settings), log_config=None)
        )
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()

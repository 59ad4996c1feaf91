"""Files that take too long to read, while others ask."""

import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from multiprocessing.connection import Connection
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs nmt[serve]")

from nmt.extras.serve import files
from nmt.extras.serve.answers import ServedRun
from tests.extras.serve.conftest import DOG, client_of, error_of

LATE = 504, "the file is not read in time; send a smaller one"


def search_forever(pipe: Connection) -> None:
    """One call, as of a regular expression that is slow for a file."""
    pipe.recv()
    re.fullmatch("(a+)+", "a" * 100 + "b")


def die(pipe: Connection) -> None:
    pipe.recv()
    os._exit(1)


def upload(client: Any) -> Any:
    return client.post("/translate_file", files={"file": ("a.txt", DOG)})


def test_others_are_answered_while_a_file_is_read(
    served: list[ServedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_serve", search_forever)
    with client_of(served, timeout=3) as client, ThreadPoolExecutor(6) as pool:
        slow = [pool.submit(upload, client) for _ in range(6)]  # more than are read at once
        time.sleep(0.5)
        for path in ("/health", "/languages"):
            assert client.get(path).status_code == 200
        assert client.post("/translate", json={"q": DOG}).status_code == 200
        assert not any(each.done() for each in slow)
        assert [error_of(each.result()) for each in slow] == [LATE] * 6


def test_a_process_that_dies(served: list[ServedRun], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_serve", die)
    with client_of(served) as client:
        text = "the file is not read: memory ran out; send a smaller one"
        assert error_of(upload(client)) == (422, text)


def test_no_process_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_serve", search_forever)
    with closing(files.FileProcess()) as file:
        pass
    file._process.join(60)
    assert file._process.exitcode is not None

"""Reads and writes a file in a process of its own: the server answers others meanwhile, and ends
one that takes too long. A thread is not enough, for a regular expression lets no other one run.
"""

import asyncio
import multiprocessing
import os
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from starlette.exceptions import HTTPException

from nmt.data.workers import start_worker
from nmt.errors import DataError
from nmt.extras.documents.document import open_document
from nmt.texts.marked import Marked

# Not a fork of the server, whose threads may hold locks, but of a process with this module alone.
CONTEXT = multiprocessing.get_context("spawn" if os.name == "nt" else "forkserver")
CONTEXT.set_forkserver_preload([__name__])


class FileProcess:
    """Reads a document, and later writes its translation.

    Args:
        threads: that wait for it.
    """

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self._pipe, there = CONTEXT.Pipe()
        self._process = CONTEXT.Process(  # type: ignore[attr-defined]
            target=_serve, args=(there,), daemon=True
        )
        self._there: Connection | None = there

    async def read(
        self, data: bytes, name: str, characters: int, seconds: float
    ) -> tuple[list[Marked], list[int], str, dict[str, list[int]]]:
        """The texts of a document, the line of each, the unit of these numbers, and the remarks.

        Raises:
            DataError: of `open_document`, or the process has died.
            HTTPException: it has more characters of text than these, or takes longer than seconds.
        """
        return await self._ask((data, name, characters), seconds)  # type: ignore[no-any-return]

    async def write(self, translations: Sequence[Marked], seconds: float) -> bytes:
        """The file with these translations. Raises: as `read`."""
        return await self._ask(translations, seconds)  # type: ignore[no-any-return]

    async def _ask(self, question: Any, seconds: float) -> Any:
        end = time.monotonic() + seconds
        answer = await asyncio.get_running_loop().run_in_executor(
            self._threads, self._wait, question, end
        )
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _wait(self, question: Any, end: float) -> Any:
        try:
            if self._there is not None:
                self._process.start()
                self._there.close()
                self._there = None
            self._pipe.send(question)
            if self._pipe.poll(max(end - time.monotonic(), 0)):
                return self._pipe.recv()
        except (EOFError, OSError):
            return DataError("the file cannot be read: memory ran out; send a smaller one")
        return HTTPException(504, "the file is not read in time; send a smaller one")

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        if self._process.pid is not None:
            self._process.kill()


def check_characters(texts: Sequence[str], most: int) -> None:
    """Raises: HTTPException: the texts of a request have more characters together."""
    count = sum(map(len, texts))
    if count > most:
        raise HTTPException(413, f"{count:,} characters; a request has at most {most:,}; split it")


def _serve(pipe: Connection) -> None:
    start_worker()
    with pipe, suppress(EOFError, OSError):  # nobody waits any more
        try:
            data, name, characters = pipe.recv()
            document = open_document(data, name)
            texts = [segment.text for segment in document.segments]
            check_characters([each.text for each in texts], characters)
            pipe.send((texts, document.lines, document.unit, document.remarks))
            pipe.send(b"".join(document.written(pipe.recv())))
        except (EOFError, OSError):
            raise
        except Exception as error:  # noqa: BLE001 - the server raises it again
            error.add_note(traceback.format_exc())
            pipe.send(error)

"""Reads and writes a file in a process of its own: the server answers others meanwhile, and ends
one that takes too long. A thread is not enough, for a regular expression lets no other one run.
"""

import multiprocessing
import os
import time
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from starlette.exceptions import HTTPException

from nmt.data.workers import start_worker
from nmt.errors import DataError
from nmt.extras.documents.document import open_document

# Not a fork of the server, whose threads may hold locks, but of a process with this module alone.
CONTEXT = multiprocessing.get_context("spawn" if os.name == "nt" else "forkserver")
CONTEXT.set_forkserver_preload([__name__])


class FileProcess:
    """Reads a document, and later writes its translation."""

    def __init__(self) -> None:
        self._pipe, there = CONTEXT.Pipe()
        self._process = CONTEXT.Process(  # type: ignore[attr-defined]
            target=_serve, args=(there,), daemon=True
        )
        self._process.start()
        there.close()

    def ask(self, question: Any, end: float) -> Any:
        """The answer to a question; see `_serve`. end: as of `time.monotonic`.

        Raises:
            DataError: of `open_document`, or the process has died.
            HTTPException: the texts are too long, or there is no answer at the end.
        """
        try:
            self._pipe.send(question)
            if not self._pipe.poll(max(end - time.monotonic(), 0)):
                raise HTTPException(504, "the file is not read in time; send a smaller one")
            answer = self._pipe.recv()
        except (EOFError, OSError):
            raise DataError("the file is not read: memory ran out; send a smaller one") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._pipe.close()


def check_characters(texts: Sequence[str], most: int) -> None:
    """Raises: HTTPException: the texts of a request have more characters together."""
    count = sum(map(len, texts))
    if count > most:
        raise HTTPException(413, f"{count:,} characters; a request has at most {most:,}; split it")


def _serve(pipe: Connection) -> None:
    """Answer three questions: a file, its name and the most characters of its texts; the languages
    of source and target; and the translations of the texts.
    """
    start_worker()
    try:
        data, name, characters = pipe.recv()
        plain = [segment.text.text for segment in open_document(data, name).segments]
        check_characters(plain, characters)
        pipe.send("\n".join(plain))
        document = open_document(data, name, languages=pipe.recv())
        texts = [segment.text for segment in document.segments]
        pipe.send((texts, document.lines, document.unit, document.remarks))
        pipe.send(b"".join(document.written(pipe.recv())))
    except Exception as error:  # noqa: BLE001 - the server raises it again
        error.add_note(traceback.format_exc())
        pipe.send(error)

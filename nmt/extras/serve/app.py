"""The API that the page uses: what answers the requests."""

import asyncio
import hmac
import secrets
import time
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from operator import attrgetter
from pathlib import Path, PureWindowsPath
from typing import Any
from urllib.parse import quote
from xml.parsers.expat import ExpatError

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from nmt import __version__
from nmt.config.parts import SUFFIXES
from nmt.data.padding import cut_batches
from nmt.extras.documents import html
from nmt.extras.documents.document import Content, Found, Segment, TextDocument
from nmt.extras.init.languages import english_names
from nmt.extras.serve import schemas
from nmt.extras.serve.answers import (
    Answer,
    Batcher,
    ServedRun,
    Task,
    TranslateTask,
    beam_tree,
    find_alternatives,
)
from nmt.extras.serve.detection import Detector
from nmt.extras.serve.files import FileProcess, check_characters
from nmt.texts.marked import Marked
from nmt.texts.warnings import describe

SCHEMES = ("bearer", "deepl-auth-key")  # of the header Authorization
MAX_LINE = 5000  # characters; the memory that its attention needs grows with their square
MAX_BATCH = 64  # texts that are translated together
MAX_PART = 32  # texts of a request that wait at once: other requests come between its parts
CHARACTERS = 200  # of a text that counts as one; longer ones count as several
MAX_FILES = 4  # that are read or written at the same time

Find = Callable[[str], Iterable[Found]]  # of a format
FINDS: dict[str, Find] = {"html": html.find}  # lines have none

KEPT_SECONDS = 600.0  # until a translated file is deleted
MAX_KEPT_BYTES = 1 << 27  # of all translated files; the oldest ones make room


@dataclass(eq=False)
class Api:
    """The functions that answer requests. /openapi.json describes them by their docstrings.

    Args:
        served: at least one run, with different names.
        characters: of all texts of a request. queue: texts that may wait. timeout: seconds until an
            answer.
        token: that requests must have; None: none.
        glossaries: the folder of those that clients of DeepL have made; None: in memory alone.
    """

    served: Sequence[ServedRun]
    characters: int = 20_000
    queue: int = 256
    timeout: float = 30.0
    token: str | None = None
    glossaries: Path | None = None

    def __post_init__(self) -> None:
        self.runs = {run.info.name: run for run in self.served}
        self.batcher = Batcher(self.queue, MAX_BATCH)
        self.downloads: dict[str, tuple[str, bytes]] = {}  # key -> name and content of a file
        self.threads = ThreadPoolExecutor(MAX_FILES)
        self.detect_language = Detector(self.served)

    async def translate(self, request: Request, body: schemas.TranslateRequest) -> JSONResponse:
        """Translate texts, line by line. LibreTranslate's clients can use this address."""
        return JSONResponse(await self.translation(request, body))

    async def translation(self, request: Request, body: schemas.TranslateRequest) -> dict[str, Any]:
        """For `schemas.TranslateAnswer`."""
        self.authorize(request, body.api_key)
        texts = [body.q] if isinstance(body.q, str) else body.q
        run, detected = self.find_run(body, "\n".join(texts))
        check_characters(texts, self.characters)
        find = FINDS.get(body.format)
        documents = await documents_of(texts, run, find)
        is_line = not find and sum(len(document.segments) for document in documents) == 1
        n = body.alternatives + 1
        if n > run.info.translations:
            raise HTTPException(
                422,
                f"alternatives: run {run.info.name} has at most {run.info.translations - 1}; "
                "`nmt serve --beam` sets a larger beam",
            )
        if body.prefix and (body.glossary or not is_line):
            raise HTTPException(422, "prefix: only for a single line of text, without a glossary")
        task = TranslateTask(run, n, (*body.glossary.items(),), body.prefix, body.details)
        answers = await self.translate_documents(request, task, documents)
        translated = [*map(written, documents, answers)]
        answer: dict[str, Any] = {"translatedText": [first for first, *_ in translated]}
        if body.alternatives:
            answer["alternatives"] = [others for _, *others in translated]
        if detected:
            answer["detectedLanguage"] = [detected[0].model_dump()] * len(texts)
        if isinstance(body.q, str):
            answer = {name: values[0] for name, values in answer.items()}
        answer["run"] = run.info.name
        if body.details:
            answer["lines"] = [each.details for of_text in answers for each in of_text]
        return answer

    async def translate_file(
        self, request: Request, body: schemas.FileRequest
    ) -> schemas.FileAnswer:
        """Translate a file, in its format. The answer says where it is then."""
        self.authorize(request, body.api_key)
        return (await self.translated_file(request, body))[0]

    async def translated_file(
        self, request: Request, body: schemas.FileRequest, *, is_new: bool = True
    ) -> tuple[schemas.FileAnswer, int]:
        """The answer to a file, and how many characters of text it has. is_new: as of `submit`."""
        ask = partial(asyncio.get_running_loop().run_in_executor, self.threads)
        with closing(await ask(FileProcess)) as file:
            end = time.monotonic() + self.timeout
            content = body.file, body.name, self.characters
            run, _ = self.find_run(body, await ask(file.ask, content, end))
            texts, numbers, unit, remarks = await ask(file.ask, run.texts.languages, end)
            task = TranslateTask(run, terms=(*body.glossary.items(),))
            (answers,) = await self.translate_texts(request, task, [texts], is_new=is_new)
            end = time.monotonic() + self.timeout
            translated = await ask(file.ask, [each.translations[0] for each in answers], end)
        lines: dict[str, list[int]] = {}
        for number, answer in zip(numbers, answers, strict=True):
            for warning in answer.warnings:
                lines.setdefault(warning, []).append(number)
        key = self.keep(translated_name(body.name, run.info.target), translated)
        told = [describe(text, where, unit) for text, where in (*lines.items(), *remarks.items())]
        url = str(request.url_for("download_file", key=key))
        file_answer = schemas.FileAnswer(translatedFileUrl=url, warnings=told, run=run.info.name)
        return file_answer, sum(len(each.text) for each in texts)

    def keep(self, name: str, content: bytes) -> str:
        """Keep a file until someone fetches it. Returns: its key, which nobody can guess."""
        key = secrets.token_urlsafe(24)
        self.downloads[key] = name, content
        most = max(MAX_KEPT_BYTES, len(content))
        while sum(len(each) for _, each in self.downloads.values()) > most:
            del self.downloads[next(iter(self.downloads))]
        asyncio.get_running_loop().call_later(KEPT_SECONDS, self.downloads.pop, key, None)
        return key

    async def download_file(self, key: str) -> Response:
        """A translated file. Needs no token beside its key."""
        if key not in self.downloads:
            raise HTTPException(404, "no such file; translated files are deleted after 10 minutes")
        name, content = self.downloads[key]
        headers = {
            "Content-Disposition": f"attachment; filename*=utf-8''{quote(name)}",
            "Cache-Control": "no-store",
        }
        return Response(content, media_type="application/octet-stream", headers=headers)

    async def alternatives(
        self, request: Request, body: schemas.AlternativesRequest
    ) -> JSONResponse:
        """What else could follow after the first tokens of a translation, with the rest of it."""
        find = partial(find_alternatives, given=body.tokens, n=body.alternatives)
        return await self.ask(request, body, "alternatives", find, body.alternatives)

    async def tree(self, request: Request, body: schemas.LineRequest) -> JSONResponse:
        """What the beam keeps at each step of a translation."""
        return await self.ask(request, body, "nodes", beam_tree, 1)

    async def ask(
        self,
        request: Request,
        body: schemas.LineRequest,
        name: str,
        find: Callable[[ServedRun, str], Iterable[Any]],
        n: int,
    ) -> JSONResponse:
        """What `find` finds for a run and a line; it counts as n texts. Raises: as `compute`."""
        self.authorize(request, body.api_key)
        run, _ = self.find_run(body, body.q)
        check_characters([body.q], self.characters)
        if "\n" in body.q:
            raise HTTPException(422, "q: only one line of text")
        results = await self.compute(request, lambda _: [[*find(run, body.q)]], None, n)
        return JSONResponse({"run": run.info.name, name: results})

    async def detect(
        self, request: Request, body: schemas.DetectRequest
    ) -> list[schemas.Detection]:
        """The languages of the runs that a text may be in, best first."""
        self.authorize(request, body.api_key)
        texts = [body.q] if isinstance(body.q, str) else body.q
        check_characters(texts, self.characters)
        return self.detect_language("\n".join(texts))

    async def list_runs(self, request: Request, api_key: str = "") -> list[schemas.Run]:
        """The runs that translate."""
        self.authorize(request, api_key)
        return [run.info for run in self.runs.values()]

    async def languages(self) -> list[schemas.Language]:
        """The languages, as LibreTranslate lists them: sources first. Needs no token."""
        pairs = self.pairs()
        codes = dict.fromkeys([*(source for source, _ in pairs), *(target for _, target in pairs)])
        return [
            schemas.Language(**_named(code), targets=[to for source, to in pairs if source == code])
            for code in codes
        ]

    def pairs(self) -> list[tuple[str, str]]:
        """The languages that the runs translate: source, target."""
        return [*dict.fromkeys((each.info.source, each.info.target) for each in self.served)]

    async def spec(self) -> dict[str, Any]:
        """What clients of LibreTranslate ask, to see whether this is one. Needs no token."""
        return {
            "info": {
                "title": "LibreTranslate",
                "version": __version__,
                "description": "nmt, with the API of LibreTranslate",
            }
        }

    async def settings(self) -> dict[str, Any]:
        """What LibreTranslate's pages ask first. Needs no token."""
        first = next(iter(self.runs.values())).info
        return {
            "apiKeys": self.token is not None,
            "charLimit": self.characters,
            "filesTranslation": True,
            "keyRequired": self.token is not None,
            "language": {"source": _named(first.source), "target": _named(first.target)},
            "suggestions": False,
            "supportedFilesFormat": [*SUFFIXES],
        }

    async def apertium(
        self,
        request: Request,
        q: str,
        langpair: str = "",
        source: str = "",
        target: str = "",
        key: str = "",
        api_key: str = "",
    ) -> dict[str, Any]:
        """Translate a text, as Apertium does. Languages: `langpair`, such as en|de, or two."""
        first, _, second = langpair.partition("|")
        fields = {"source": first or source, "target": second or target, "api_key": key or api_key}
        body = schemas.TranslateRequest.model_validate({"q": q, **fields})
        text = {"translatedText": (await self.translation(request, body))["translatedText"]}
        return {"responseData": text, "responseDetails": None, "responseStatus": 200, **text}

    async def list_pairs(self) -> dict[str, Any]:
        """The languages of the runs, as Apertium lists them. Needs no token."""
        pairs = [{"sourceLanguage": one, "targetLanguage": other} for one, other in self.pairs()]
        return {"responseData": pairs, "responseDetails": None, "responseStatus": 200}

    async def health(self) -> schemas.Health:
        """The server answers. Needs no token."""
        return schemas.Health(status="ok", version=__version__, waiting=self.batcher.n_waiting)

    def authorize(self, request: Request, api_key: str = "", field: str = "api_key") -> None:
        """Raises: HTTPException if the server has a token, and the request does not."""
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        given = value.strip() if scheme.lower() in SCHEMES else api_key
        if scheme.lower() == "basic":  # of an address such as http://nmt:TOKEN@host
            with suppress(ValueError):
                given = b64decode(value).decode().partition(":")[2]
        if self.token is not None and not hmac.compare_digest(given.encode(), self.token.encode()):
            raise HTTPException(
                401,
                "the token is missing or wrong; send it as `Authorization: Bearer TOKEN`, or as "
                f"{field}",
            )

    def find_run(
        self, body: schemas.RunRequest, text: str
    ) -> tuple[ServedRun, list[schemas.Detection]]:
        """The run that a request names, or the first with its languages; and the languages that the
        text may be in, if the request asks for them.

        Raises:
            HTTPException: there is none.
        """
        if body.run is not None and body.run not in self.runs:
            known = ", ".join(self.runs)
            raise HTTPException(422, f"run: there is no {body.run!r}; the runs are {known}")
        is_auto = body.source == "auto" and "source" in body.model_fields_set
        detected = self.detect_language(text) if is_auto else []
        source = known_code(body.source, [source for source, _ in self.pairs()])
        target = known_code(body.target, [target for _, target in self.pairs()])
        for language in [*(each.language for each in detected), source]:
            for name, run in self.runs.items():
                languages = (language, run.info.source), (target, run.info.target)
                if body.run in (None, name) and all(a in ("auto", b) for a, b in languages):
                    return run, detected
        pairs = {f"{run.info.source}-{run.info.target}" for run in self.runs.values()}
        raise HTTPException(
            422,
            f"source, target: no run translates {body.source}-{body.target}; there is "
            f"{', '.join(sorted(pairs))}",
        )

    async def translate_documents(
        self, request: Request, task: TranslateTask, documents: Sequence[TextDocument]
    ) -> list[list[Answer]]:
        """The answers to the texts of documents. Raises: as `compute`."""
        of_each = [[segment.text for segment in each.segments] for each in documents]
        return await self.translate_texts(request, task, of_each)

    async def translate_texts(
        self,
        request: Request,
        task: TranslateTask,
        documents: Sequence[Sequence[Marked]],
        *,
        is_new: bool = True,
    ) -> list[list[Answer]]:
        """The answers to the texts of documents: in parts, so that other requests come between.

        Raises: as `compute`; the queue refuses only the first part of new ones.
        """
        texts = [text for document in documents for text in document]
        sizes = [1 + len(each.text) // CHARACTERS for each in texts]
        answers: list[Answer] = []
        for part in cut_batches(sizes, max_padded=MAX_PART):
            is_first = is_new and not answers
            answers += await self.compute(
                request, task, texts[part], sum(sizes[part]), is_new=is_first
            )
        remaining = iter(answers)
        return [[*islice(remaining, len(document))] for document in documents]

    async def compute(
        self, request: Request, task: Task, values: Any, n_texts: int, *, is_new: bool = True
    ) -> Any:
        """The result of a task, as soon as the thread that translates has it.

        Raises:
            NmtError: of the task, or the queue is full.
            HTTPException: the time is over, or the client is gone.
        """
        result = self.batcher.submit(task, values, n_texts, is_new=is_new)
        gone = asyncio.ensure_future(_wait_for_disconnect(request))
        try:
            await asyncio.wait(
                (result, gone), timeout=self.timeout, return_when=asyncio.FIRST_COMPLETED
            )
            if result.done():
                return result.result()
        finally:  # a request that nobody waits for leaves the queue
            result.cancel()
            gone.cancel()
        raise HTTPException(
            504, f"no translation after {self.timeout:g} s; the server is busy, or the text is long"
        )


def _named(code: str) -> dict[str, str]:
    return {"code": code, "name": english_names().get(code, code)}


def known_code(code: str, known: Iterable[str]) -> str:
    """The one of some codes that is meant: "DE" and "de_AT" are "de", if there is no "de-AT".
    Others stay.
    """
    by_form = {each.lower().replace("_", "-"): each for each in known}
    form = code.lower().replace("_", "-")
    return by_form.get(form) or by_form.get(form.partition("-")[0]) or code


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def documents_of(
    texts: Sequence[str], run: ServedRun, find: Find | None
) -> list[TextDocument]:
    """Of the texts of a request. find: of their format; None: they are lines.

    Raises:
        FormatError: `find` refuses a text.
        HTTPException: a line is too long, or the lines are too many.
    """
    documents = await asyncio.to_thread(lambda: [_document(text, run, find) for text in texts])
    n_lines = 0 if find else sum(len(document.segments) for document in documents)
    if n_lines > schemas.MAX_TEXTS:
        raise HTTPException(
            413, f"{n_lines:,} lines; a request has at most {schemas.MAX_TEXTS:,}; split it"
        )
    return documents


def _document(text: str, run: ServedRun, find: Find | None) -> TextDocument:
    """Its lines, if the text does not have the format of `find`."""
    content = Content(text if find else text.replace("\r\n", "\n"))
    if find is html.find:
        content = content.edited(html.labels(content.text, run.texts.languages))
    try:
        return TextDocument("text", content, (find or _lines)(content.text))
    except ExpatError:
        return _document(text, run, None)


def _lines(text: str) -> Iterator[Segment]:
    """As `find` of a format: all lines. Raises: HTTPException if one is too long."""
    start = 0
    for line in text.split("\n"):
        if len(line) > MAX_LINE:
            raise HTTPException(
                413, f"{len(line):,} characters in a line; it has at most {MAX_LINE:,}; split it"
            )
        yield Segment(start, start + len(line), Marked(line), attrgetter("written"))
        start += len(line) + 1


def written(document: TextDocument, answers: Sequence[Answer]) -> list[str]:
    """The translations of a document, best first."""
    n = max((len(each.translations) for each in answers), default=1)
    ranks = ([each.translations[: rank + 1][-1] for each in answers] for rank in range(n))
    return [b"".join(document.written(best)).decode() for best in ranks]


def translated_name(name: str, language: str) -> str:
    """Of a translated file: README.de.md. `name` may be a path of any system."""
    path = PureWindowsPath(name)
    return f"{path.stem}.{language}{path.suffix}"

"""The API of DeepL, as its clients use it: texts, languages, glossaries and documents."""

import asyncio
import csv
import json
import logging
import re
import secrets
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import (
    Base64Bytes,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from nmt.errors import DataError, NmtError
from nmt.extras.documents.document import known_format
from nmt.extras.documents.xml import find as find_in_xml
from nmt.extras.init.languages import english_names
from nmt.extras.serve.answers import QueueFullError, ServedRun, TranslateTask
from nmt.extras.serve.app import FINDS, KEPT_SECONDS, MAX_FILES, Api, documents_of, written
from nmt.extras.serve.files import check_characters
from nmt.extras.serve.guard import explained
from nmt.extras.serve.schemas import FileRequest, Message, RunRequest, Terms, Text
from nmt.files import explain_write_errors, read_json, write_json
from nmt.texts.glossary import Glossary

logger = logging.getLogger(__name__)

MAX_TEXTS = 50  # of a request
MAX_GLOSSARIES = 100
MAX_DOCUMENTS = 16  # that are not translated yet
STATUS_SECONDS = 2.0  # that a client waits at most for a document, when it asks
OFFICE_SECONDS = 8.0  # until LibreOffice gets its text back; after 10 it empties the paragraph
TABLES: dict[str, Any] = {"csv": {}, "tsv": {"delimiter": "\t", "quoting": csv.QUOTE_NONE}}
NESTED = re.compile(r"dictionaries\[(\d+)\]\.(\w+)")  # a name in a form


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _names(value: Any) -> list[str]:
    """From a list, or names with commas between them."""
    return ",".join(map(str, _listed(value))).split(",")


def _terms(value: Any, info: ValidationInfo) -> Any:
    """From the lines of a table."""
    if not isinstance(value, str):
        return value
    rows = csv.reader(value.splitlines(), **TABLES[info.data.get("entries_format", "tsv")])
    try:
        return {row[0].strip(): row[1].strip() for row in rows if any(row)}
    except (csv.Error, IndexError):
        raise ValueError("each line must be a term and its translation") from None


class Fields(Message):
    """The fields of all requests, and those of a dictionary. Unknown ones have no effect: clients
    add some every year. One that is null or empty counts as missing.
    """

    model_config = ConfigDict(extra="ignore")

    auth_key: Text = ""
    source_lang: Text = "auto"
    target_lang: Text = ""
    # Of texts
    text: Annotated[list[Text], Field(max_length=MAX_TEXTS), BeforeValidator(_listed)] = Field([])
    tag_handling: Literal["", "html", "xml"] = ""
    ignore_tags: Annotated[list[Text], BeforeValidator(_names)] = Field([])
    splitting_tags: Annotated[list[Text], BeforeValidator(_names)] = Field([])
    non_splitting_tags: Annotated[list[Text], BeforeValidator(_names)] = Field([])
    formality: Literal["default", "prefer_more", "prefer_less", "more", "less"] = "default"
    custom_instructions: Any = None
    style_id: Any = None
    show_billed_characters: bool = False
    glossary_id: Text = ""
    type: Literal["source", "target"] = Field("source", description="of languages to list")
    # Of a glossary
    name: Text = Field("", description="in a form, that of the file")
    entries_format: Literal["tsv", "csv"] = "tsv"
    entries: Annotated[Terms, BeforeValidator(_terms)] = Field({})
    dictionaries: list["Fields"] = Field([])
    creation_time: Text = ""
    # Of a document
    file: Base64Bytes = b""
    filename: Text = ""
    output_format: Text = ""
    document_key: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, fields: Any) -> Any:
        if not isinstance(fields, dict):
            return fields
        nested: dict[str, dict[str, Any]] = {}
        for name, value in fields.items():
            if found := NESTED.fullmatch(name):
                nested.setdefault(found[1], {})[found[2]] = value
        kept: dict[str, Any] = {"text": ""} if fields.get("text") == "" else {}
        kept |= {"dictionaries": [*nested.values()]} if nested else {}
        return {name: value for name, value in fields.items() if value not in (None, "")} | kept


async def fields_of(request: Request) -> Fields:
    """The fields of a request, in its address and in its body.

    Raises:
        RequestValidationError: a field is wrong.
        HTTPException: the body is no JSON object.
    """
    try:
        body = json.loads(await request.body() or b"{}")
        return Fields.model_validate({**request.query_params, **body})
    except ValidationError as error:
        problems = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        raise RequestValidationError(problems) from None
    except (ValueError, TypeError, RecursionError):
        raise HTTPException(400, "the body must be a JSON object, or a form") from None


def _shown(code: str) -> str:
    """The code of a language, as DeepL writes it: PT-BR."""
    return code.upper().replace("_", "-")


def _table(dictionary: Fields) -> str:
    return "\n".join(map("\t".join, dictionary.entries.items()))


# The fields of a request -> JSON, or another answer.
Answer = Callable[[Request, Fields], Awaitable[Any]]
# A document: its characters and its download, or why there is none.
Document = asyncio.Task[tuple[int, str] | str]


class DeepL:
    """The functions that answer requests.

    Raises:
        DataError: a glossary cannot be read, or there is no place for new ones.
    """

    def __init__(self, api: Api) -> None:
        self.api = api
        self.n_characters = 0  # of all translated texts
        self.glossaries: dict[str, Fields] = {}
        self.documents: dict[str, tuple[str, Document]] = {}  # with their keys
        self.lanes = asyncio.Semaphore(MAX_FILES)
        if api.glossaries is None:
            return
        with explain_write_errors(api.glossaries):
            api.glossaries.mkdir(parents=True, exist_ok=True)
        for path in api.glossaries.glob("*.json"):
            try:
                self.glossaries[path.stem] = Fields.model_validate(read_json(path))
            except (OSError, ValueError):
                raise DataError(f"{path}: is no intact glossary; restore or delete it") from None

    def routes(self) -> list[tuple[list[str], str, Callable[[Request], Awaitable[Response]]]]:
        """Methods, an address, and what answers them."""
        both = ["GET", "POST"]
        answering = self.answering
        rows = [
            (["POST"], "/v2/translate", self.translate),
            (both, "/v2/languages", answering(self.languages)),
            (["GET"], "/v2/usage", answering(self.usage)),
            (["GET"], "/v2/glossary-language-pairs", answering(self.pairs)),
            (["POST"], "/v2/document", answering(self.new_document, "file", "target_lang")),
            (both, "/v2/document/{key}", answering(self.document)),
            (both, "/v2/document/{key}/result", answering(self.result)),
        ]
        for path in ("/v2/glossaries", "/v3/glossaries"):
            rows += [
                (["GET"], path, answering(self.list_glossaries)),
                (["POST"], path, answering(self.new_glossary, "name")),
                (["GET", "DELETE"], f"{path}/{{key}}", answering(self.glossary)),
                (["GET"], f"{path}/{{key}}/entries", answering(self.entries)),
            ]
        return rows

    def answering(self, answer: Answer, *required: str) -> Callable[[Request], Awaitable[Response]]:
        """A function that checks the token and the fields of a request, and answers it."""

        async def respond(request: Request) -> Response:
            fields = await fields_of(request)
            request.state.texts = fields.text
            self.api.authorize(request, fields.auth_key, "auth_key")
            for name in required:
                if not getattr(fields, name):
                    raise HTTPException(400, f"{name}: Field required")
            found = await answer(request, fields)
            return found if isinstance(found, Response) else JSONResponse(found)

        return respond

    async def translate(self, request: Request) -> Response:
        """Translate texts. LibreOffice gets its text back in place of an error, for which it would
        empty the paragraph.
        """
        is_office = request.headers.get("user-agent", "").startswith("LibreOffice")
        request.state.texts = []
        try:
            async with asyncio.timeout(OFFICE_SECONDS if is_office else None):
                return await self.answering(self.texts, "text", "target_lang")(request)
        except (NmtError, HTTPException, TimeoutError):
            if not (is_office and request.state.texts):
                raise
        return JSONResponse({"translations": [{"text": text} for text in request.state.texts]})

    async def texts(self, request: Request, fields: Fields) -> Any:
        """Translate texts."""
        if fields.formality in ("more", "less"):
            raise HTTPException(400, "formality: this model has no formality; send default")
        if fields.custom_instructions or fields.style_id:
            raise HTTPException(
                400, "custom_instructions, style_id: the model follows no instructions; send none"
            )
        texts = fields.text
        run = self.run_for(fields, "\n".join(texts))
        check_characters(texts, self.api.characters)
        in_xml = partial(
            find_in_xml,
            ignored=fields.ignore_tags,
            borders=fields.splitting_tags,
            inline=fields.non_splitting_tags,
        )
        find = in_xml if fields.tag_handling == "xml" else FINDS.get(fields.tag_handling)
        documents = await documents_of(texts, run, find)
        task = TranslateTask(run, terms=(*self.terms(fields, run).items(),))
        answers = await self.api.translate_documents(request, task, documents)
        self.n_characters += sum(map(len, texts))
        source = {"detected_source_language": _shown(run.info.source)}
        translations = [
            {**source, "text": written(document, found)[0]}
            | ({"billed_characters": len(text)} if fields.show_billed_characters else {})
            for text, document, found in zip(texts, documents, answers, strict=True)
        ]
        return {"translations": translations}

    def run_for(self, fields: Fields, text: str = "") -> ServedRun:
        """That for the languages of a request. Raises: HTTPException: there is none."""
        languages = RunRequest(source=fields.source_lang, target=fields.target_lang)
        return self.api.find_run(languages, text)[0]

    async def languages(self, _: Request, fields: Fields) -> Any:
        """The languages of the runs."""
        is_target = fields.type == "target"
        more = {"supports_formality": False} if is_target else {}
        codes = dict.fromkeys(pair[is_target] for pair in self.api.pairs())
        return [
            {"language": _shown(code), "name": english_names().get(code, code), **more}
            for code in codes
        ]

    async def usage(self, *_: Any) -> Any:
        """How many characters of text were translated since the start."""
        return {"character_count": self.n_characters, "character_limit": 10**12}

    async def pairs(self, *_: Any) -> Any:
        """The languages that a glossary may have."""
        pairs = [{"source_lang": one, "target_lang": other} for one, other in self.api.pairs()]
        return {"supported_languages": pairs}

    async def list_glossaries(self, request: Request, _: Fields) -> Any:
        """All glossaries."""
        return {"glossaries": [self.about(key, request) for key in self.glossaries]}

    async def new_glossary(self, request: Request, fields: Fields) -> Any:
        """Make a glossary; in version 2, it has one dictionary."""
        if len(self.glossaries) >= MAX_GLOSSARIES:
            raise HTTPException(400, f"there are {MAX_GLOSSARIES} glossaries; delete one first")
        glossary = Fields(
            name=fields.name,
            creation_time=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
            dictionaries=[self.dictionary(each) for each in fields.dictionaries or [fields]],
        )
        key = secrets.token_hex(16)
        if self.api.glossaries:
            path = self.api.glossaries / f"{key}.json"
            with explain_write_errors(path):
                write_json(path, glossary.model_dump(exclude_unset=True))
        self.glossaries[key] = glossary
        return JSONResponse(self.about(key, request), 201)

    def dictionary(self, fields: Fields) -> Fields:
        """One for a new glossary. Raises: HTTPException, DataError: a run cannot use it."""
        if not (fields.target_lang and fields.entries):
            raise HTTPException(400, "target_lang, entries: Field required")
        Glossary.of(fields.entries)
        info = self.run_for(fields).info
        return Fields(source_lang=info.source, target_lang=info.target, entries=fields.entries)

    async def glossary(self, request: Request, _: Fields) -> Any:
        """What a glossary is; or delete it."""
        key = request.path_params["key"]
        about = self.about(key, request)
        if request.method != "DELETE":
            return about
        if self.api.glossaries:
            (self.api.glossaries / f"{key}.json").unlink(missing_ok=True)
        del self.glossaries[key]
        return Response(status_code=204)

    def about(self, key: str, request: Request) -> dict[str, Any]:
        """What clients get to know of a glossary. Raises: HTTPException: there is none."""
        glossary = self.known(key)
        rows = [
            {
                "source_lang": each.source_lang,
                "target_lang": each.target_lang,
                "entry_count": len(each.entries),
            }
            for each in glossary.dictionaries
        ]
        is_new = request.scope["path"].startswith("/v3/")
        more = {"dictionaries": rows} if is_new else {"ready": True, **rows[0]}
        about = {"name": glossary.name, "creation_time": glossary.creation_time}
        return {"glossary_id": key, **about, **more}

    def known(self, key: str) -> Fields:
        """A glossary. Raises: HTTPException: there is none."""
        if key not in self.glossaries:
            raise HTTPException(404, f"there is no glossary {key!r}")
        return self.glossaries[key]

    async def entries(self, request: Request, fields: Fields) -> Any:
        """The terms of a glossary; in version 3, those for two languages."""
        key = request.path_params["key"]
        if request.scope["path"].startswith("/v2/"):
            table = _table(self.known(key).dictionaries[0])
            return Response(table, media_type="text/tab-separated-values")
        found = self.dictionary_for(key, self.run_for(fields))
        languages = {"source_lang": found.source_lang, "target_lang": found.target_lang}
        return {"dictionaries": [{**languages, "entries": _table(found), "entries_format": "tsv"}]}

    def dictionary_for(self, key: str, run: ServedRun) -> Fields:
        """That of a glossary for the languages of a run. Raises: HTTPException: there is none."""
        pair = run.info.source, run.info.target
        for each in self.known(key).dictionaries:
            if (each.source_lang, each.target_lang) == pair:
                return each
        raise HTTPException(400, f"glossary_id: this glossary has no terms for {'-'.join(pair)}")

    def terms(self, fields: Fields, run: ServedRun) -> dict[str, str]:
        """Those that a request asks for. Raises: as `dictionary_for`."""
        return self.dictionary_for(fields.glossary_id, run).entries if fields.glossary_id else {}

    async def new_document(self, request: Request, fields: Fields) -> Any:
        """Take a document, which is translated in the background."""
        name = fields.filename or fields.name
        known_format(name)
        if not name.lower().endswith(fields.output_format.lower()):
            raise HTTPException(400, "output_format: a document keeps its format; leave it out")
        if sum(not task.done() for _, task in self.documents.values()) >= MAX_DOCUMENTS:
            raise QueueFullError(f"{MAX_DOCUMENTS} documents are being translated; try again later")
        run = self.run_for(fields)
        terms = self.terms(fields, run)
        body = FileRequest.model_construct(
            file=fields.file,
            name=name,
            source=fields.source_lang,
            target=fields.target_lang,
            run=run.info.name if terms else None,
            glossary=terms,
        )
        number = secrets.token_hex(16)
        key = secrets.token_hex(32)
        # Of whose client nobody hears: it may go, and come back.
        background = Request(request.scope, asyncio.Event().wait)  # type: ignore[arg-type]
        task = asyncio.create_task(self.translated(background, body))
        self.documents[number] = key, task
        forget = partial(self.documents.pop, number, None)
        loop = asyncio.get_running_loop()
        task.add_done_callback(lambda _: loop.call_later(KEPT_SECONDS, forget))
        return {"document_id": number, "document_key": key}

    async def translated(self, request: Request, body: FileRequest) -> tuple[int, str] | str:
        """The characters and the download of a document; or why there is none."""
        async with self.lanes:
            try:
                answer, n = await self.api.translated_file(request, body, is_new=False)
            except Exception as error:
                status, text = explained(error)
                if status == 500:
                    logger.exception("a document failed")
                return text
        self.n_characters += n
        return n, answer.translatedFileUrl.rpartition("/")[2]

    def task_of(self, request: Request, fields: Fields) -> Document:
        """That of a document. Raises: HTTPException: there is none with this key."""
        key, task = self.documents.get(request.path_params["key"], ("", None))
        if task is None or not secrets.compare_digest(key.encode(), fields.document_key.encode()):
            raise HTTPException(404, "no such document; they are deleted after 10 minutes")
        return task

    async def document(self, request: Request, fields: Fields) -> Any:
        """How far a document is; some clients ask again only after 5 seconds."""
        task = self.task_of(request, fields)
        await asyncio.wait([task], timeout=STATUS_SECONDS)
        state: dict[str, Any] = {"status": "translating", "seconds_remaining": 5}
        match task.result() if task.done() else None:
            case str(text):
                state = {"status": "error", "error_message": text}
            case (n, _):
                state = {"status": "done", "billed_characters": n}
        return {"document_id": request.path_params["key"], **state}

    async def result(self, request: Request, fields: Fields) -> Any:
        """A translated document, once."""
        task = self.task_of(request, fields)
        if not task.done():
            raise HTTPException(503, "the document is not translated yet; ask again later")
        found = task.result()
        if isinstance(found, str):
            raise HTTPException(400, found)
        response = await self.api.download_file(found[1])
        del self.api.downloads[found[1]]
        return response

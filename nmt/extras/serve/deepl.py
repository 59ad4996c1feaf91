"""The API of DeepL, as its clients use it: texts, languages and use."""

import asyncio
import json
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from nmt.errors import NmtError
from nmt.extras.documents.xml import find as find_in_xml
from nmt.extras.init.languages import english_names
from nmt.extras.serve.answers import TranslateTask
from nmt.extras.serve.app import FINDS, Api, Find, documents_of, written
from nmt.extras.serve.files import check_characters
from nmt.extras.serve.schemas import Message, RunRequest, Text

MAX_TEXTS = 50  # of a request
OFFICE_SECONDS = 8.0  # until LibreOffice gets its text back; after 10 it empties the paragraph
CHARACTER_LIMIT = 10**12  # some clients stop before they reach it


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _names(value: Any) -> list[str]:
    """From a list, or names with commas between them."""
    return ",".join(map(str, _listed(value))).split(",")


Texts = Annotated[list[Text], Field(max_length=MAX_TEXTS), BeforeValidator(_listed)]
Names = Annotated[list[Text], BeforeValidator(_names)]


class Fields(Message):
    """The fields of all requests. Unknown ones have no effect: clients add some every year. One
    that is null or empty counts as missing.
    """

    model_config = ConfigDict(extra="ignore")

    auth_key: Text = ""
    text: Texts = Field([])
    target_lang: Text = ""
    source_lang: Text = "auto"
    tag_handling: Literal["", "html", "xml"] = ""
    ignore_tags: Names = Field([])
    splitting_tags: Names = Field([])
    non_splitting_tags: Names = Field([])
    formality: Literal["default", "prefer_more", "prefer_less", "more", "less"] = "default"
    custom_instructions: Any = None
    style_id: Any = None
    show_billed_characters: bool = False
    type: Literal["source", "target"] = "source"

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, fields: dict[str, Any]) -> dict[str, Any]:
        return {
            name: value
            for name, value in fields.items()
            if value is not None and (value != "" or name == "text")
        }


class DeepL:
    """The functions that answer requests."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.n_characters = 0  # of all translated texts

    async def fields_of(self, request: Request, *required: str) -> Fields:
        """The fields of a request, in its address and in its body.

        Raises:
            RequestValidationError: a field is wrong.
            HTTPException: one is missing, the body is no JSON object, or the token is wrong.
        """
        try:
            body = json.loads(await request.body() or b"{}")
            fields = Fields.model_validate({**request.query_params, **body})
        except ValidationError as error:
            problems = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
            raise RequestValidationError(problems) from None
        except (ValueError, TypeError, RecursionError):
            raise HTTPException(400, "the body must be a JSON object, or a form") from None
        request.state.texts = fields.text
        self.api.authorize(request, fields.auth_key, "auth_key")
        for name in required:
            if not getattr(fields, name):
                raise HTTPException(400, f"{name}: Field required")
        return fields

    async def translate(self, request: Request) -> JSONResponse:
        """Translate texts. LibreOffice gets its text back in place of an error, for which it would
        empty the paragraph.
        """
        is_office = request.headers.get("user-agent", "").startswith("LibreOffice")
        request.state.texts = []
        try:
            async with asyncio.timeout(OFFICE_SECONDS if is_office else None):
                translations = await self._translations(request)
        except (NmtError, HTTPException, TimeoutError):
            if not (is_office and request.state.texts):
                raise
            translations = [{"text": text} for text in request.state.texts]
        return JSONResponse({"translations": translations})

    async def _translations(self, request: Request) -> list[dict[str, Any]]:
        fields = await self.fields_of(request, "text", "target_lang")
        if fields.formality in ("more", "less"):
            raise HTTPException(400, "formality: this model has no formality; send default")
        if fields.custom_instructions or fields.style_id:
            raise HTTPException(
                400, "custom_instructions, style_id: the model follows no instructions; send none"
            )
        texts = fields.text
        languages = RunRequest(source=fields.source_lang, target=fields.target_lang)
        run, _ = self.api.find_run(languages, "\n".join(texts))
        check_characters(texts, self.api.characters)
        in_xml: Find = partial(
            find_in_xml,
            ignored=fields.ignore_tags,
            borders=fields.splitting_tags,
            inline=fields.non_splitting_tags,
        )
        documents = await documents_of(
            texts, run, {**FINDS, "xml": in_xml}.get(fields.tag_handling)
        )
        answers = await self.api.translate_documents(request, TranslateTask(run), documents)
        self.n_characters += sum(map(len, texts))
        return [
            {
                "detected_source_language": shown(run.info.source),
                "text": written(document, found)[0],
            }
            | ({"billed_characters": len(text)} if fields.show_billed_characters else {})
            for text, document, found in zip(texts, documents, answers, strict=True)
        ]

    async def languages(self, request: Request) -> JSONResponse:
        """The languages of the runs."""
        is_target = (await self.fields_of(request)).type == "target"
        more = {"supports_formality": False} if is_target else {}
        names = english_names()
        codes = dict.fromkeys(pair[is_target] for pair in self.api.pairs())
        return JSONResponse(
            [{"language": shown(code), "name": names.get(code, code), **more} for code in codes]
        )

    async def usage(self, request: Request) -> JSONResponse:
        """How many characters of text were translated since the start."""
        await self.fields_of(request)
        counts = {"character_count": self.n_characters, "character_limit": CHARACTER_LIMIT}
        return JSONResponse(counts)


def shown(code: str) -> str:
    """The code of a language, as DeepL writes it: PT-BR."""
    return code.upper().replace("_", "-")

"""The JSON of the server: what clients send, and what they get.

`/translate` speaks the language of LibreTranslate (`q`, `source`, `target`, `format`,
`alternatives`, `api_key`), with more fields.
"""

import json
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Base64Bytes,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from nmt.decoding.translation import Replacement

MAX_TEXTS = 128  # of a request
MAX_TERMS = 500  # of a glossary


def _check_text(text: str) -> str:
    text.encode()  # half of a surrogate pair raises a ValueError
    return text


def _read_json(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except RecursionError:
        raise ValueError("nested too deep") from None


Text = Annotated[str, AfterValidator(_check_text)]
Term = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_check_text)]
# In a form, it is JSON inside a field.
Terms = Annotated[dict[Term, Term], Field(max_length=MAX_TERMS), BeforeValidator(_read_json)]


class Message(BaseModel):
    """Base of all requests and answers."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Error(Message):
    """Why there is no answer."""

    error: str = Field(description="one line: what is wrong, and what to do")


class Request(Message):
    """Base of all requests. A field that is null or, beside texts, empty counts as missing: clients
    send all their fields.
    """

    api_key: Text = Field("", description="the token of the server, in place of Authorization")

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, fields: Any) -> Any:
        if not isinstance(fields, dict):
            return fields
        given = {name: value for name, value in fields.items() if value not in (None, "")}
        return {"q": fields["q"], **given} if fields.get("q") == "" else given


class RunRequest(Request):
    """Base of the requests to a run."""

    source: Text = Field(
        "auto", description="language code of the texts; auto: detected; default: that of the run"
    )
    target: Text = Field("auto", description="language code of the translations; auto: as source")
    run: Text | None = Field(None, description="its name; default: the first with these languages")


class TranslateRequest(RunRequest):
    """Texts to translate, line by line; a line may have several sentences."""

    q: Text | Annotated[list[Text], Field(min_length=1, max_length=MAX_TEXTS)] = Field(
        description="a text, or a list of texts"
    )
    format: Literal["text", "html"] = "text"
    alternatives: int = Field(
        0, ge=0, description="further translations of each text to add; fewer than the beam"
    )
    glossary: Terms = Field({}, description="term in the source language -> its translation")
    prefix: Text = Field("", description="the start of the translation; for a single line")
    details: bool = Field(False, description="add words, probabilities and attention of each line")


class FileRequest(RunRequest):
    """A file to translate: as a form (multipart/form-data), or as JSON."""

    file: Base64Bytes = Field(description="in base64; in a form the file itself, with its name")
    name: Text = Field(description="of the file; its suffix says which format it has")
    glossary: Terms = Field({}, description="in a form as JSON")


class LineRequest(RunRequest):
    """A text: what does the beam keep on the way to its translation?"""

    q: Text = Field(description="one sentence")


class AlternativesRequest(LineRequest):
    """A text and the first tokens of its translation: what else could follow?"""

    tokens: list[Annotated[Text, Field(max_length=200)]] = Field(
        max_length=1000,
        description="those of the translation before the word to replace, as in its details",
    )
    alternatives: int = Field(8, ge=1, le=50, description="how many to return")


class DetectRequest(Request):
    """A text: in which language is it?"""

    q: Text | list[Text]


class Detection(Message):
    """A language that a text may be in."""

    confidence: int = Field(description="percent; 0: it is in none that the runs know")
    language: str = Field(description="language code")


class Word(Message):
    """A word of a translation: text between spaces; a token in scripts that write no spaces."""

    text: str
    before: str = Field(description="what stands before it: a space, or nothing")
    token: int = Field(description="index of the first token of the word")
    probability: float = Field(description="of all its tokens, given the words before it")
    origin: Literal["model", "copied", "glossary"] = Field(description="copied: it was <unk>")


class TranslationDetails(Message):
    """A translation of a line. The fields up to `complete` are those of `nmt translate --json`."""

    text: str
    tokens: list[str] = Field(description="before unknown words are replaced")
    score: float = Field(description="ranks the translations of a line")
    log_prob: float = Field(description="of all tokens and the end, in nats")
    token_log_probs: list[float] = Field(description="with that of the end, if it is complete")
    alignment: list[tuple[int, int]] = Field(description="pairs (source word, word) from 0")
    replaced: list[Replacement] = Field(description="of tokens <unk>, or where a term stands")
    complete: bool = Field(description="false: cut at the maximum length")
    confidence: float | None = Field(None, description="probability that it is good")
    words: list[Word]
    attention: list[list[float]] | None = Field(
        description="by word: weights of the source words, and of the end of the source; a very "
        "long line has none, but its sentences do"
    )


class LineDetails(Message):
    """A line of the texts, and its translations."""

    source: str
    src_words: list[str]
    src_cut: bool = Field(description="it is longer than decoding.max_source_tokens")
    warnings: list[str] = Field(description="what is probably wrong with the best translation")
    translations: list[TranslationDetails] = Field(description="best first")
    sentences: list["LineDetails"] | None = Field(None, description="if there are several")


class TranslateAnswer(Message):
    """The translations; single ones if `q` is a single text, otherwise lists in its order."""

    translatedText: str | list[str]  # noqa: N815 - the name in LibreTranslate's answers
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: Detection | list[Detection] | None = Field(  # noqa: N815
        None, description="if `source` is auto; of all texts together"
    )
    run: str
    lines: list[LineDetails] | None = Field(None, description="of all texts; only with details")


class FileAnswer(Message):
    """Where the translated file is."""

    translatedFileUrl: str = Field(  # noqa: N815
        description="for some minutes; whoever knows it needs no token"
    )
    warnings: list[str] = Field(description="what is probably wrong in which lines")
    run: str


class WordAlternative(Message):
    """An alternative for a word, and the translation that follows from it."""

    word: str
    probability: float = Field(description="of the first token of the word")
    translation: TranslationDetails
    warnings: list[str] = Field(description="what is probably wrong with the translation")


class AlternativesAnswer(Message):
    """The most probable words that could follow, best first."""

    run: str
    alternatives: list[WordAlternative]


class TreeNode(Message):
    """A beginning of a translation, which the beam kept."""

    text: str = Field(description="of its last token; <eos>: the end")
    parent: int | None = Field(description="index of the node that it goes on; null: the root")
    probability: float = Field(description="of its last token, after those before it")
    log_prob: float = Field(description="of all its tokens, in nats")
    ends: bool = Field(description="it is complete, or one of the best and cut")
    rank: int | None = Field(description="from 0, among the best that the search found")


class TreeAnswer(Message):
    """What the beam kept: in order of time, then the most probable first."""

    run: str
    nodes: list[TreeNode]


class Run(Message):
    """A run that translates."""

    name: str
    source: str = Field(description="language code")
    target: str = Field(description="language code")
    translations: int = Field(description="how many translations of a line it has at most")


class Language(Message):
    """A language, as LibreTranslate lists it."""

    code: str
    name: str = Field(description="in English")
    targets: list[str] = Field(description="language codes; none: it is only a target")


class Health(Message):
    """The state of the server."""

    status: Literal["ok"]
    version: str
    waiting: int = Field(description="texts in the queue")

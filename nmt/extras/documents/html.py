"""HTML: whole pages and parts of them, also templates of Jinja, Django, Go and others."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from html import escape

from nmt.data.formats import Languages
from nmt.extras.documents.document import Edit, Segment, Skipped
from nmt.extras.documents.languages import CODE, RIGHT_TO_LEFT, label
from nmt.extras.documents.markup import (
    ATTRIBUTE,
    HTML,
    RAW,
    READINGS,
    Kind,
    Piece,
    Tag,
    blocks,
    marked_of,
    tags,
)
from nmt.texts.items import BREAK, VOID
from nmt.texts.marked import Marked

INLINE = re.compile(
    "a|abbr|acronym|b|bdi|bdo|big|br|cite|code|data|del|dfn|em|font|i|img|input|ins|kbd|mark|math|"
    "nobr|output|q|rp|rt|rtc|ruby|s|samp|small|span|strike|strong|sub|sup|svg|time|tt|u|var|wbr"
).fullmatch
KEPT = {"code", "kbd", "math", "samp", "svg", "tt", "var"}  # stay, as words of the text around
SKIPPED = {*RAW, "pre", "template"}
READ = {"alt", "aria-label", "aria-description", "label", "placeholder", "title"}  # attributes
LANGUAGE_META = re.compile(r"(?i)^[^<]*=\s*[\"']?(?:content-language|og:locale)\b(?!:)")
READ_META = re.compile(r"(?:\w+:)?(?:description|title|site_name)")
# Templates that stand for a word: those without conditions, loops and remarks.
WORD = re.compile(
    r"\{\{[-~]?+\s*+(?![#/^!>]|(?:else|end|if|range|with|block|define)\b)|<%="
    r"|<\?(?:=|php\s+echo\b)"
    r"|\{%-?+\s*+(?!end|el|if|for|block|with|filter|set|macro|empty|plural|load|include|extends|comment)"
)
PAGE_LANGUAGE = re.compile(r"<html\b[^<>]*?\slang\s*=\s*[\"']?([a-z]{2,3})\b", re.IGNORECASE)
MAX_HEAD = 5000  # characters before which it stands
QUOTES = {'"': "&quot;", "'": "&#39;"}


def find(text: str) -> Iterator[Segment]:
    """The texts between the borders of blocks, and the attributes that people read."""
    for tag, pieces in blocks([*tags(text, HTML)], 0, len(text), partial(kind_of, text)):
        if tag is not None and not _stays(text, tag):
            yield from _read_attributes(text, tag)
        if pieces:
            yield from _segments(text, pieces)


def labels(text: str, languages: Languages) -> Iterator[Edit | Skipped]:
    """`lang` and `dir` of the page, and of elements that name the language of the source."""
    old, new = ("rtl" if RIGHT_TO_LEFT(each) else "ltr" for each in languages)
    for tag, _ in blocks([*tags(text, HTML)], 0, len(text), partial(kind_of, text)):
        if tag is None or kind_of(text, tag)[2]:
            continue
        is_page, found = tag.name == "html", list[Edit | Skipped]()
        for name in ("content",) if LANGUAGE_META.search(tag.attributes) else ("lang", "xml:lang"):
            edit, said = tag.edit(name, languages[1])
            if said or (is_page and name == "lang"):
                found += label(edit, said, languages, is_whole=is_page)
        yield from found
        if found and isinstance(found[0], Skipped):
            return
        edit, said = tag.edit("dir", new)
        is_changed = said.lower() == old and (found or tag.name in ("html", "body"))
        if old != new and (is_changed or (is_page and new == "rtl" and not said)):
            yield edit


def kind_of(text: str, tag: Tag) -> tuple[Kind | None, str, bool]:
    """As `blocks` asks for it."""
    name = tag.name.lstrip("/")
    if not name:
        is_word = WORD.match(text, tag.start)
        return "item" if is_word else "empty" if text[tag.start + 1] == "!" else None, "", False
    is_start = name == tag.name and name not in VOID
    stays = name in KEPT or name in SKIPPED or name in READINGS or _stays(text, tag)
    is_whole = is_start and stays
    if not INLINE(name):
        return None, name, is_whole
    if BREAK.match(f"<{name}"):
        return "break", name, False
    if name in VOID or name == "svg" or name in READINGS:
        return "empty", name, is_whole
    return "item" if is_whole else "open" if is_start else "close", name, is_whole


def _stays(text: str, tag: Tag) -> bool:
    """Whether the author wants no translation of the element, or it is in another language."""
    attributes = tag.attributes.lower()
    if "lang" in attributes and tag.name != "html":
        own = CODE.fullmatch(tag.values.get("lang", ""))
        page = PAGE_LANGUAGE.search(text, 0, MAX_HEAD)
        if own and own[1] and page and own[1].lower() != page[1].lower():
            return True
    if "translate" not in attributes:  # most have no such thing
        return False
    return tag.values.get("translate") == "no" or "notranslate" in tag.values.get("class", "")


def _read_attributes(text: str, tag: Tag) -> Iterator[Segment]:
    """The attributes of a tag that people read."""
    values, names = tag.values, READ
    if tag.name == "input" and values.get("type", "").lower() in ("button", "reset", "submit"):
        names = READ | {"value"}
    elif tag.name == "meta":
        is_read = READ_META.fullmatch(values.get("name") or values.get("property") or "")
        names = {"content"} if is_read else set()
    offset = tag.end - 1 - len(tag.attributes)
    for found in ATTRIBUTE.finditer(tag.attributes):
        if found[1].lower() not in names:
            continue
        n_quotes = found[2][0] in "\"'"
        start, end = offset + found.start(2) + n_quotes, offset + found.end(2) - n_quotes
        templates = [each for each in tags(text, HTML, start, end) if not each.name]
        *_, (_, pieces) = blocks(templates, start, end, lambda _: ("item", "", False))
        yield from _segments(text, pieces, offset + found.start(), offset + found.end())


def _segments(
    text: str, pieces: Sequence[Piece], first: int | None = None, last: int | None = None
) -> Iterator[Segment]:
    """A text, if it has words. first, last: where the attribute that has it begins and ends."""
    marked, start, end = marked_of(text, pieces)
    if not any(map(str.isalpha, marked.text)):
        return
    if first is None or last is None:
        yield Segment(start, end, marked, lambda translation: translation.escaped(_escaped))
        return
    quote = text[last - 1] if text[last - 1] in QUOTES else ""
    before = text[first:start] + ("" if quote else '"')
    after = ("" if quote else '"') + text[end:last]

    def write(translation: Marked) -> str:
        return before + translation.escaped(partial(_escaped, quote=quote or '"')) + after

    yield Segment(first, last, marked, write)


def _escaped(text: str, quote: str = "") -> str:
    """quote: that of an attribute."""
    text = escape(text, quote=False)
    return text.replace(quote, QUOTES[quote]) if quote else text

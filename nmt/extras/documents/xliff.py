"""XLIFF 1.2 and 2.0: pairs of source and target."""

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape

from nmt.data.formats import Languages
from nmt.errors import FormatError
from nmt.extras.documents.document import Edit, Segment, Skipped
from nmt.extras.documents.languages import label
from nmt.extras.documents.markup import Kind, Tag, body_of, content_of, elements
from nmt.extras.documents.messages import message
from nmt.text.accelerators import Words
from nmt.texts.marked import Marked

UNITS = ("trans-unit", "segment")  # of version 1 and 2
PAIRS = {"g", "mrk", "pc"}  # elements with text
OPEN, CLOSE = {"bpt", "bx", "sc"}, {"ept", "ex", "ec"}
UNTRANSLATED = {"new", "needs-translation", "initial"}
STATE = re.compile(r"""\s(?:state|state-qualifier|subState)\s*=\s*(?:"[^"]*"|'[^']*')""")


def find(text: str) -> Iterator[Segment | Skipped]:
    """The sources of units; a target is marked as one to review."""
    words = Words(text)
    for element in elements(text):
        if element.parent is None and element.local != "xliff":
            raise FormatError("line 1: is XML, but no XLIFF")
        children = {each.local: each for each in element.children}
        is_unit = element.local in UNITS and "source" in children
        if is_unit and not element.inherits("translate", "no"):
            places = _marked_segments(children.get("target"))
            parts = _marked_segments(children.get("seg-source"))
            found = [
                _segment(text, words, parts[number], places[number], children["target"])
                for number in parts
                if number in places
            ]
            # Without places in the target, it gets those of the divided source.
            source = children["seg-source" if parts else "source"]
            for segment in found if places else [_unit(text, words, element, children, source)]:
                if isinstance(segment, Skipped) or segment.text != Marked(""):
                    yield segment
            if places and len(found) < len(parts):
                yield Skipped(element.start, "has segments without a place in its target")


def labels(text: str, languages: Languages) -> Iterator[Edit | Skipped]:
    """The language of the targets, in version 1 that of each file; and those that do not fit."""
    for element in elements(text):
        for src, tgt in (("source-language", "target-language"), ("srcLang", "trgLang")):
            if src in element.values or tgt in element.values:
                yield from label(*element.edit(src, ""), languages, stays=True)
                yield from label(*element.edit(tgt, languages[1]), languages)


def _marked_segments(element: Tag | None) -> dict[str, Tag]:
    """The segments of a source or target that a CAT tool has divided, by their number."""
    inside = [] if element is None else [element]
    for each in inside:  # which grows
        inside += each.children
    return {
        each.values.get("mid", ""): each
        for each in inside
        if each.local == "mrk" and each.values.get("mtype") == "seg"
    }


def _present(text: str, content: Marked, target: Tag, *stated: Tag) -> Marked:
    """The translation of a content; Marked("") if it is empty, or a copy without a translation.

    stated: the elements that may say so.
    """
    present = _content(text, target)
    has_words = present.text.strip() or any(mark.kind == "item" for mark in present.marks)
    states = {each.values.get("state") for each in stated}
    is_copy = present == content and not UNTRANSLATED.isdisjoint(states)
    return present if has_words and not is_copy else Marked("")


def _segment(text: str, words: Words, source: Tag, place: Tag, target: Tag) -> Segment | Skipped:
    """A divided segment, and its place in the target. Such a target keeps its state."""
    body, content = body_of(text, source), _content(text, source)
    before = f"<{place.name}{place.attributes.removesuffix('/').rstrip()}>"
    return message(
        place.start,
        place.outer_end,
        content,
        lambda translation: f"{before}{translation}</{place.name}>",
        _present(text, content, place, target),
        str if body[2] else escape,
        words=words,
    )


def _unit(
    text: str, words: Words, unit: Tag, children: dict[str, Tag], source: Tag
) -> Segment | Skipped:
    target = children.get("target")
    body, content = body_of(text, source), _content(text, source)
    present = Marked("") if target is None else _present(text, content, target, target, unit)
    name = children["source"].name.replace("source", "target")
    before = f"<{name}"
    if target is None:
        start = end = children.get("seg-source", source).outer_end
        indent = text[text.rfind(">", 0, source.start) + 1 : source.start]
        before = indent + before if indent.isspace() else before
    else:
        start, end = target.start, target.outer_end
        before += _without_state(target)
    if unit.local == "segment":
        tag = unit.name + _without_state(unit)
        before = f'<{tag} state="translated">{text[unit.end : start]}{before}>'
        start = unit.start
    else:
        before += ' state="needs-review-translation">'
    before += text[source.end : body[0]]
    after = f"{text[body[1] : source.inner_end]}</{name}>"
    return message(
        start,
        end,
        content,
        lambda translation: f"{before}{translation}{after}",
        present,
        str if body[2] else escape,
        words=words,
    )


def _without_state(tag: Tag) -> str:
    return STATE.sub("", tag.attributes.removesuffix("/").rstrip())


def _content(text: str, element: Tag) -> Marked:
    keeps_space = element.inherits("xml:space", "preserve")
    return content_of(text, body_of(text, element), _kind, keeps_space=keeps_space)


def _kind(tag: Tag) -> tuple[Kind, str, bool]:
    """As `blocks` asks for it."""
    name, values = tag.local.lstrip("/"), tag.values
    if not name:  # an entity, or a remark
        return "item" if tag.is_entity else "empty", "", False
    number = values.get("id", "")  # Angular: START_LINK, CLOSE_LINK, LINE_BREAK
    is_kept = values.get("translate") == "no" or values.get("mtype") == "protected"
    if name in PAIRS and not is_kept:
        is_empty = tag.attributes.endswith("/")
        return "close" if tag.name[0] == "/" else "empty" if is_empty else "open", name, False
    if name in OPEN or number.startswith("START_"):
        return "open", "", True
    if name in CLOSE or number.startswith("CLOSE_"):
        return "close", "", True
    is_break = number.startswith("LINE_BREAK") or values.get("ctype") == "lb"
    return "break" if is_break or values.get("subType") == "xlf:lb" else "item", "", True

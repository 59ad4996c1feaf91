"""Message catalogs of gettext: PO files and their templates, POT."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from nmt.data.formats import Languages
from nmt.errors import FormatError
from nmt.extras.documents.document import Edit, Segment, Skipped, line_at
from nmt.extras.documents.languages import PLURAL_FORMS, label
from nmt.extras.documents.messages import escapes, message, unescaped
from nmt.text.accelerators import Words
from nmt.texts.marked import Marked

QUOTED = r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
# No language has more than six plural forms.
PIECE = re.compile(
    r"[ \t]*+(?:#(?P<comment>.*)|(?P<key>domain|msg(?:ctxt|id(?:_plural)?|str(?:\[\d\])?))\s*+"
    rf"(?P<text>{QUOTED}(?:\s*+{QUOTED})*))?[ \t]*+(?:\n|\Z)"
)
NAMES = dict(zip('abfnrtv"', '\a\b\f\n\r\t\v"', strict=True))
BY_NUMBER = re.compile(r"(\\[^0-7x])|\\(?:([0-7]{1,3})|x([\da-fA-F]{1,2}))")  # \033, \x1b
CONTROL = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd]")
ESCAPES = escapes(NAMES)
LINE = re.compile(r"[^\n]*\n|[^\n]+")
WORDS = re.compile(r".{0,75}\S(?:\s+|\Z)|\S+\s*|\s+", re.DOTALL)  # that fit on a line of gettext
WIDTH = 80
FIELD = re.compile(r'(?:"|\\n)(Language|Plural-Forms):((?:[^"\\]|"\s*+")*+)')
NUMBER_OF_FORMS, NO_CHARSET = re.compile(r"nplurals\s*=\s*(\d)\b"), re.compile("charset=(CHARSET)")


@dataclass
class Entry:
    """A message.

    place: where a comment with its flags belongs. flag: where the flag `fuzzy` belongs in the one
    that it has, and how it is written there. texts, spans: of msgid, msgid_plural, msgctxt, msgstr,
    msgstr[0], ...: the text, and where it stands, from the first quotation mark to the last.
    """

    place: int | None = None
    flag: tuple[int, str] | None = None
    is_fuzzy: bool = False
    texts: dict[str, str] = field(default_factory=dict)
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def source(self) -> str:
        return self.texts.get("msgid", "")

    @property
    def forms(self) -> list[str]:
        """The keys of its translations, in order."""
        return [key for key in self.texts if key.startswith("msgstr")]


def entries(text: str) -> Iterator[Entry]:
    """All messages, the header too, which has an empty source. Raises: FormatError."""
    entry, position = Entry(), 0
    while position < len(text):
        piece = PIECE.match(text, position)
        if piece is None:
            raise FormatError(f"line {line_at(text, position)}: is not of a message catalog")
        comment, key = piece["comment"], piece["key"] or ""
        if entry.forms and (comment is not None or (key and not key.startswith("msgstr"))):
            yield entry
            entry = Entry()
        if comment is not None and comment.startswith("~"):  # obsolete, as the comments before it
            entry = Entry()
        elif comment is not None and comment.startswith(","):
            entry.flag = piece.start("comment"), ", fuzzy"
            entry.is_fuzzy |= "fuzzy" in comment
        elif entry.place is None and (key.startswith("msg") or (comment or "").startswith("|")):
            entry.place = position
        if key:
            raw = "".join(each[1:-1] for each in re.findall(QUOTED, piece["text"]))
            entry.texts[key] = unescaped(BY_NUMBER.sub(_by_number, raw), NAMES)
            entry.spans[key] = piece.span("text")
        position = piece.end()
    if entry.forms:
        yield entry


def find(text: str) -> Iterator[Segment | Skipped]:
    """The sources; a translation is marked as fuzzy."""
    n_forms = 0
    words = Words(text)
    for entry in entries(text):
        if not entry.source:
            n_forms = _number_of_forms(entry.texts.get("msgstr", ""))
            continue
        if entry.place is None or entry.source.isspace():
            continue
        if "msgid_plural" in entry.texts and not n_forms:
            yield Skipped(
                entry.place,
                "has no number of plural forms (nplurals in its header); add it, and the forms",
            )
        if CONTROL.search(entry.source):
            yield Skipped(entry.place, "has characters such as \\033; translate it by hand")
            continue
        # Where only some forms are translated, those before them stay as they are.
        forms = entry.forms
        if n_forms and not any(entry.texts[key] for key in forms[n_forms:]):
            forms = forms[:n_forms]
        n_done = next((i for i, key in enumerate(forms) if not entry.texts[key]), 0)
        for key in forms[n_done:]:
            # Of several forms, the first is for one.
            is_one = key in ("msgstr", "msgstr[0]") and n_forms != 1
            source = "msgid" if is_one or "msgid_plural" not in entry.texts else "msgid_plural"
            start, before = entry.flag or (entry.place, "#, fuzzy\n")
            if entry.is_fuzzy or key != forms[n_done]:  # it is there
                start, before = entry.spans[key][0], ""
            before += text[start : entry.spans[key][0]]
            missing = range(len(forms), n_forms) if key == forms[-1] and len(forms) > 1 else ()
            write = partial(_written, before, text[slice(*entry.spans[source])], missing)
            yield message(
                start,
                entry.spans[entry.forms[-1] if key == forms[-1] else key][1],
                Marked(entry.texts[source]),
                write,
                Marked(entry.texts[key]),
                words=words,
                is_form=len(forms) > 1,
            )


def labels(text: str, languages: Languages) -> Iterator[Edit | Skipped]:
    """The language of the header and its plural forms; and those that do not fit."""
    found = [*entries(text)]
    start, end = next((each.spans["msgstr"] for each in found if not each.source), (-1, -1))
    if start < 0:  # there is no header
        return
    fields = {each[1]: each.span(2) for each in FIELD.finditer(text, start, end)}
    if charset := NO_CHARSET.search(text, start, end):
        yield *charset.span(1), "UTF-8"

    def field(name: str, value: str) -> Edit:
        """A new field has no line of its own: messages stay on theirs."""
        missing = start + 1, start + 1, f"{name}: {value}\\n"
        return (*fields[name], f" {value}") if name in fields else missing

    said, old = (text[slice(*fields.get(name, (0, 0)))] for name in ("Language", "Plural-Forms"))
    named = [*label(field("Language", languages[1]), said, languages)] if fields else []
    yield from named
    rule = PLURAL_FORMS.get(languages[1], "")
    n_old, n_new = map(_number_of_forms, (old, rule))
    is_other = any(isinstance(each, Skipped) for each in named)
    is_renewed = not n_old or (named and not any(each.texts.get("msgstr[0]") for each in found))
    if rule and is_renewed and not is_other and (old or "msgid_plural" in text):
        yield field("Plural-Forms", rule)
    elif n_old and not is_other and (n_old < n_new or (named and said.strip() and not rule)):
        reason = f"has {n_old} plural forms (nplurals in its header), which may not be those of"
        yield Skipped(start, f"{reason} {languages[1]}; correct it")


def _number_of_forms(header: str) -> int:
    number = NUMBER_OF_FORMS.search(header)
    return int(number[1]) if number else 0


def _by_number(found: re.Match[str]) -> str:
    """The same character as \\u.... One beyond ASCII is a part of a character."""
    if found[1]:
        return found[1]
    number = int(found[2], 8) if found[2] else int(found[3], 16)
    return f"\\u{number if number < 0x80 else 0xFFFD:04x}"


def _written(before: str, like: str, missing: Iterable[int], translation: str) -> str:
    """As gettext writes it: on one line if it fits. like: a text of the file, which may have longer
    lines. missing: the numbers of further forms.
    """
    lines, width = LINE.findall(translation), max(map(len, like.split("\n")))
    if width <= WIDTH:
        lines = [words for line in lines for words in WORDS.findall(line)]
    lines = [f'"{line.translate(ESCAPES)}"' for line in lines or [""]]
    fits = len(lines) == 1 and len(lines[0]) <= max(width, WIDTH - len("msgstr[0] "))
    quoted = "\n".join(lines if fits else ['""', *lines])
    return before + quoted + "".join(f"\nmsgstr[{i}] {quoted}" for i in missing)

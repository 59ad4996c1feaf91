"""Finds what a translation must have unchanged: placeholders, tags, numbers, emoji."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Literal

import numpy as np

from nmt.decoding.translator import Translator
from nmt.model.lexicon import LAST_KEY
from nmt.text.tokenizers import NO_SPACES, has_letters
from nmt.texts.marked import Kind, Mark, Marked, Sign, in_order
from nmt.texts.patterns import CURRENCY, EMOJI, MINUS, NUMBER, PATTERNS
from nmt.texts.word_weights import Range

# Read in the places of items until other words are chosen.
ANY_NAME, ANY_NUMBER = "Xxx", "000"
# Languages that write each noun with a capital letter, which then does not tell a name.
NOUNS_IN_CAPITALS = {"de", "lb"}
MIN_COPIED_SUBWORD = 0.5  # the probability of each subword of a word that is always copied
# From a word to its kind: new to the model, always copied, or any other.
KindOf = Callable[[str], Literal["new", "copied", "other"]]
_KEPT = [(row.kept, row.pattern) for row in PATTERNS if row.kept is not None]
_SMALL = re.compile(r"\d{1,2}[/'’–-]\d|\d[/'’–-]\d\d")  # "5-6" and "1/2" are left to the model
WHOLE_NUMBER = re.compile(rf"{MINUS}(?<![^\W_]){NUMBER}(?![^\W_])")
# Also "1.2 Names", but not "1.5 liters".
_LIST_MARK = re.compile(
    r"\s*(?:(\d\d?\.)|[1-9]\d?(?:\.\d\d?){1,3}\.?(?=\s+[A-Z])|\(?(?:\d\d?|[a-z]|[ivx]{2,4})\)"
    r"|[-‐•*+—–‣◦▪■□●○►▶→·»]|\[[ xX]\]|#{1,6}|>(?:\s*>)*)\s+(?=\S)"
)
_LABEL = re.compile(r"(\s*\S*\w\S*(?: \S+){0,3}(?<![\s.!?:]))\s?:\s*")
# Most sentences have nothing of all this.
_HINT = re.compile(
    rf"\d[\d.,:/'’-]*\d|[{{%<&@#$\\`_/\[\]]|\w[.:]\w|{EMOJI}|[A-Z\d]-\d|[a-z\d]-[A-Z]"
    r"|[A-Za-z]\d|\d[A-Za-z]|\B[-:!.]\w|[A-Za-z]\s?\+\s?[-+=A-Z\d\[]|[+-][←↑→↓]|::\w|\(\)"
    r"|[⌘⌥⇧⌃§†‡×°⁰¹²³⁴-⁹₀-₉¼½¾⅓⅔⅛≥≤±≈~>]|\d\s[A-Za-zµ]|\*\.|[-/_]\*|\+\+"
    rf"|[{CURRENCY}]"
)
_CASED_WORD = re.compile(r"[^\W\d_](?:\w|[-'’](?=[^\W\d_])(?!s\b))*")
# What belongs to an item beside it: "file_%d.txt", "{0}%", "250GB", but not "1990s" and "100th".
_WORD = r"[A-Za-z\d_\u00c0-\u024f\u0370-\u052f]"
_BEFORE = re.compile(rf"(?:{_WORD}+=?|[#@]|{_WORD}*[{CURRENCY}])\Z")
_AFTER = {
    "item": re.compile(rf"(?:{_WORD}+)?(?:\.[a-z]\w{{0,3}}(?!\w))?(?:%%|%(?!\w)|[{CURRENCY}])?"),
    "number": re.compile(rf"(?!(?:s|st|nd|rd|th|er|ers|e|ème)\b)(?:{_WORD}+)?(?:%%)?"),
}
MAX_BEFORE = MAX_LABEL = 100  # characters
_JOINT = re.compile(r"[/:.,|=+~_\\–-]?")  # between two items that are one: "{a}/{b}"
_LETTER = re.compile(rf"[^\W{NO_SPACES}]")  # of scripts that write spaces between words
# Two elements that are one: "Ctrl + S", "a/b", "File → Save".
_BETWEEN = re.compile(r"[^\w\s()\[\]{}\"'“”‘’«»]{0,2}|\s?[+→>›|]\s?")
_DOTS = re.compile(r"[\"'“„«‘]?\s*+(?:(?:\.{2,}+|…)\s*+)++(?=[\w\"'“„«(¿¡]|\Z)")
STANDING = {"break", "empty", "note"}  # kinds of marks without words
VOID = {"br", "hr", "img", "input", "meta", "wbr"}  # elements of HTML without an end
# Others, whose other half may stand in another line.
_HTML = (
    "a b body button code div em font form h1 h2 h3 h4 head html i label li ol option p pre span"
    " strong sub sup table td th title tr u ul"
)
_KNOWN = {*VOID, *_HTML.split()}
# Tags at which a line ends.
BREAK = re.compile(
    r"</?(?:br|hr|address|article|aside|blockquote|caption|center|dd|details|div|dl|dt|fieldset"
    r"|figcaption|figure|footer|form|h[1-6]|header|li|main|nav|ol|option|p|pre|section|summary"
    r"|table|tbody|td|tfoot|th|thead|title|tr|ul)(?![\w:.-])",
    re.IGNORECASE,
)
_GOES_ON = re.compile(rf"(?:(?!{BREAK.pattern})<[^<>]*>){{0,9}}(\w)", re.IGNORECASE)
# The number of a note, after its word, or another raised sign: "dog<sup>1</sup>", "dog[1]", "dog¹";
# but "dog[s]" is a word.
# Each repetition has a limit, so that no text takes long.
_SIGNS = r"(?:<[^<>]{0,300}>|&#?\w{1,20};|[^\w<>&]|\d){1,40}?"
_WORD_BEFORE = r"(?<=[\w.,;:!?\"'”’»)])"
NOTE = re.compile(
    rf"<(su[bp])\b[^<>]{{0,300}}>{_SIGNS}</\1>|(?<!\d)<(su[bp])\b[^<>]{{0,300}}>(?:[a-z]|TM|SM)</\2>"
    rf"|(?<=[^\s(\[])<a\s(?=[^<>]{{0,300}}#)[^<>]{{0,300}}>{_SIGNS}</a>"
    rf"|{_WORD_BEFORE}(?:(?:\[(?:[1-9]\d{{0,2}}(?:\s?[,–-]\s?\d{{1,3}}){{0,9}}|[a-rt-z])\]){{1,9}}(?![\w(\[])"
    r"|\[\W{0,3}\d{1,3}\W{0,3}\]\([^()\s]{0,300}\)|[⁺⁻]?[⁰¹²³⁴-⁹]{1,9}|[₀-₉]{1,9}|[†‡]{1,3})"
)
_LOWERED = re.compile(r"[₀-₉]|<sub\b|.*\"subscript\"", re.DOTALL)
# What is one with a raised or lowered sign: "10<sup>6</sup>", "H<sub>2</sub>O".
_FORMULA = re.compile(r"\d*(?:[A-Z][a-z]?\d*)+")
# "120 m²"
_RAISED = re.compile(r"[²³]|<.*>[23]<", re.DOTALL)
_LENGTH = r"(?:[kmcdµn]?[mgs]|ft|in|yd|mi)"
_UNIT_BEFORE = re.compile(rf"(?<!\w){NUMBER}\s?(?:{_LENGTH}/)?{_LENGTH}\Z")
_TERM = r"[A-Za-z\d\u00c0-\u024f\u0370-\u03ff]+"
_TERM_BEFORE, _TERM_AFTER = re.compile(rf"{_TERM}\Z"), re.compile(_TERM)
# Elements of plain lines that stay, the last one over characters: ruby.
_OWN: list[tuple[Kind, re.Pattern[str]]] = [
    ("note", NOTE),
    ("item", re.compile(r"<(code|kbd|samp|var)\b[^<>]{0,300}>[^<>]{1,300}</\1>")),
    ("note", re.compile(r"(?:<(r[pt])\b[^<>]{0,300}>[^<>]{0,300}</\1>){1,9}")),
]


def signs(
    text: str, keep: Sequence[re.Pattern[str]] = (), formulas: Sequence[Sign] = ()
) -> list[Sign]:
    """What stays as it is, in order, each with the characters that it covers. Numbers have three
    digits at least, or are decimals, dates or times.

    Args:
        keep: finds further items. formulas: items with marks of the text inside.
    """
    if not keep and not formulas and not _HINT.search(text):
        return []
    found = [*formulas]
    for kind, pattern in _OWN:
        for match in pattern.finditer(text):
            sign = _sign(text, *match.span(), kind)
            found.append((_formula(text, sign) if pattern is NOTE else None) or sign)
    found += [
        Sign(match.start(), match[0], kind, len(match[0]))
        for kind, pattern in [*_KEPT, *(("item", pattern) for pattern in keep)]
        for match in pattern.finditer(text)
        if match[0] and not (kind == "number" and _SMALL.fullmatch(match[0]))
    ]
    whole: list[Sign] = []
    for sign in sorted(found, key=lambda sign: (sign.position, -sign.covered)):
        if not whole or sign.position >= whole[-1].end:
            whole.append(sign)
    joined = [Sign(0, "", "empty")]  # before the first one
    for each, following in pairwise([*whole, Sign(len(text), "", "empty")]):
        before = joined[-1]
        sign = _with_neighbors(text, each, before.end, following.position)
        are_items = {before.kind, sign.kind} <= {"item", "number"} and not before.parts + sign.parts
        if are_items and _JOINT.fullmatch(text, before.end, sign.position):
            kind = sign.kind if before.kind == "number" else before.kind
            joined[-1] = _sign(text, before.position, sign.end, kind)
        else:
            joined.append(sign)
    return _with_kinds_of_tags(text, joined[1:])


def _sign(text: str, start: int, end: int, kind: Kind) -> Sign:
    return Sign(start, text[start:end], kind, end - start)


def _formula(text: str, note: Mark) -> Sign | None:
    """The item of which a raised or lowered sign is a part, if it is one."""
    before = _TERM_BEFORE.search(text, max(note.position - MAX_BEFORE, 0), note.position)
    after = _TERM_AFTER.match(text, note.end)
    unit = _UNIT_BEFORE.search(text, max(note.position - MAX_BEFORE, 0), note.position)
    if unit and not after and _RAISED.search(note.written):
        return _sign(text, unit.start(), note.end, "item")
    if before is None or not (
        after
        or before[0][-1].isdecimal()
        or (_LOWERED.match(note.written) and _FORMULA.fullmatch(before[0]))
    ):
        return None
    return _sign(text, before.start(), after.end() if after else note.end, "item")


def _with_neighbors(text: str, sign: Sign, first: int, last: int) -> Sign:
    """The item and the letters that touch it, between two places."""
    if sign.parts or sign.kind not in ("item", "number"):
        return sign
    before = _BEFORE.search(text, max(first, sign.position - MAX_BEFORE), sign.position)
    start = sign.position if before is None else before.start()
    after = _AFTER[sign.kind].match(text, sign.end, last)
    return _sign(text, start, sign.end if after is None else after.end(), sign.kind)


def _with_kinds_of_tags(text: str, found: list[Sign]) -> list[Sign]:
    """Tags that do not enclose anything are empty, or placeholders: "Type <name> here"; blocks
    begin and end a line.
    """
    kinds: list[Kind] = [sign.kind for sign in found]
    is_open: list[tuple[int, str]] = []
    n_open: defaultdict[str, int] = defaultdict(int)
    for index, sign in enumerate(found):
        if sign.kind != "open":
            continue
        name = re.findall(r"[\w:.-]+", sign.written)[0].lower()
        kinds[index] = "break" if BREAK.match(sign.written) else "empty"
        if sign.written[1] == "/":
            while n_open[name] and kinds[index] == "empty":
                opening, other = is_open.pop()
                n_open[other] -= 1
                if other == name:
                    kinds[opening], kinds[index] = "open", "close"
        elif sign.written[-2] != "/" and name not in VOID:
            is_open.append((index, name))
            n_open[name] += 1
    for index, sign in enumerate(found):
        name = sign.written[1:-1]
        if sign.kind == "open" and kinds[index] == "empty" and name.isidentifier():
            before = text[max(sign.position - 1, 0) : sign.position]
            is_apart = not before.strip() and not text[sign.end : sign.end + 1].isalnum()
            kinds[index] = "item" if is_apart and name.lower() not in _KNOWN else "empty"
    return [replace(sign, kind=kind) for sign, kind in zip(found, kinds, strict=True)]


def without_signs(marked: Marked, keep: Sequence[re.Pattern[str]] | None) -> Marked:
    """A text with its tags taken off, and a word in the place of each item.

    Args:
        keep: finds further items; with None there are no items but those that are marks.
    """
    found = [] if keep is None else signs(marked.text, keep, [*_formulas(marked)])
    if not found and not marked.marks:
        return marked
    ordered = in_order([*_outside(marked.marks, found), *found])
    n_breaks = Counter(mark.position for mark in ordered if mark.kind == "break")
    parts = list[str]()
    marks = list[Mark]()
    length = position = 0  # of the new text; in the old one
    for mark in ordered:
        part = marked.text[position : mark.position]
        written, position = mark.written, mark.end
        following = marked.text[position : position + 1]
        word = ""
        if mark.kind in ("item", "number"):
            is_after_item = not part and bool(marks) and marks[-1].covered > 0
            before = (part or "".join(parts[-1:]))[-1:]
            touches = is_after_item or _LETTER.match(before) or _LETTER.match(following)
            if isinstance(mark, Sign) or (written and not touches):
                word = ANY_NUMBER if mark.kind == "number" else ANY_NAME
        elif isinstance(mark, Sign) and following.isspace() and mark.kind in STANDING:
            # Between two spaces: one of them goes with it.
            stripped = part.rstrip() if length or part.strip() else part
            part, written = stripped, part[len(stripped) :] + written
        place = length + len(part)
        marks.append(replace(mark, position=place, written=written, covered=len(word)))
        _join_element(marks)
        word = word or _space_after(marked.text, mark, n_breaks)
        parts += [part, word]
        length = place + len(word)
    return _side_by_side(Marked("".join([*parts, marked.text[position:]]), tuple(marks)))


def _space_after(text: str, mark: Mark, n_breaks: Mapping[int, int]) -> str:
    """The space that a single break between two words needs, if the line goes on after it."""
    if mark.kind != "break" or n_breaks[mark.position] > 1:
        return ""
    following = _GOES_ON.match(text, mark.end)
    is_word = text[max(mark.position - 1, 0) : mark.position] not in ("", ">", " ")
    return " " if is_word and following and following[1].islower() else ""


def _formulas(marked: Marked) -> Iterator[Sign]:
    """The items of which notes are parts."""
    inner: defaultdict[Range, list[Mark]] = defaultdict(list)
    for note in marked.marks:
        if note.kind == "note" and (item := _formula(marked.text, note)):
            inner[item.position, item.end].append(note)
    for (start, end), notes in inner.items():
        places = pairwise([start, *(note.position for note in notes), end])
        *words, last = (_sign(marked.text, *place, "item") for place in places)
        yield _one([*(part for pair in zip(words, notes, strict=True) for part in pair), last])


def _outside(marks: Sequence[Mark], found: Sequence[Sign]) -> Iterator[Mark]:
    """The marks of a text, none inside of what was found, without those that are parts of it."""
    around = {place: sign for sign in found for place in range(sign.position + 1, sign.end)}
    inner = {part for sign in found for part in sign.parts}
    last = 0
    for mark in marks:
        if mark in inner:
            continue
        place = mark.position
        if sign := around.get(place):
            place = sign.end if mark.kind == "close" else sign.position
        last = max(place, last)
        yield replace(mark, position=last)


def _join_element(marks: list[Mark]) -> None:
    """If the last marks are an element around nothing but an item, they become one."""
    if [mark.kind for mark in marks[-3:]] != ["open", "item", "close"]:
        return
    opening, item, closing = marks[-3:]
    if item.covered and (opening.position, closing.position) == (item.position, item.end):
        marks[-3:] = [_one(marks[-3:])]


def _side_by_side(marked: Marked) -> Marked:
    """Items with nothing but a sign between them become one: <kbd>Ctrl</kbd>+<kbd>S</kbd>."""
    groups: list[list[Mark]] = []
    for mark in marked.marks:
        last = groups[-1][-1] if groups else mark
        if (
            groups
            and last.kind == mark.kind == "item"
            and (last.covered or len(groups[-1]) > 1)
            and (mark.covered or mark.position == last.end)
            and _BETWEEN.fullmatch(marked.text, last.end, mark.position)
        ):
            groups[-1] += [_sign(marked.text, last.end, mark.position, "item"), mark]
        else:
            groups.append([mark])
    joined = (group[0] if len(group) == 1 else _one(group) for group in groups)
    return replace(marked, marks=tuple(joined))


def _one(marks: Sequence[Mark]) -> Sign:
    """The item of several marks."""
    parts = tuple(part for mark in marks for part in mark.parts or (mark,) if part.written)
    written = "".join(part.written for part in parts)
    return Sign(marks[0].position, written, "item", marks[-1].end - marks[0].position, parts)


def without_edges(marked: Marked, *, ordinals: bool) -> Marked:
    """A sentence whose "1. ", "- " or "..." at the start is a mark, or the colon after a label.

    ordinals: "1." may be one.
    """
    label = _LABEL.fullmatch(marked.text) if len(marked.text) <= MAX_LABEL else None
    if label and all(mark.end <= label.end(1) for mark in marked.marks):
        colon = marked.text[label.end(1) :]
        marked = Marked(label[1], (*marked.marks, Sign(len(label[1]), colon, "edge")))
    found = _LIST_MARK.match(marked.text)
    size = 0 if found is None or (ordinals and found[1]) else found.end()
    if dots := _DOTS.match(marked.text, size):
        size = dots.end()
    inside = [mark for mark in marked.marks if mark.position < size]
    if not size or any(mark.position or mark.kind != "open" or not dots for mark in inside):
        return marked
    rest = (replace(mark, position=max(mark.position - size, 0)) for mark in marked.marks)
    return Marked(marked.text[size:], (Sign(0, marked.text[:size], "edge"), *rest))


def with_items(marked: Marked, found: Iterable[Range], kind: Kind) -> Marked:
    """The same with further items, but those in which a mark stands."""
    places = [mark.position for mark in marked.marks]
    new = [
        _sign(marked.text, start, end, kind)
        for start, end in found
        if bisect_right(places, start) == bisect_left(places, end)
    ]
    return replace(marked, marks=in_order([*marked.marks, *new])) if new else marked


def names(text: str, kind_of: KindOf) -> list[Range]:
    """The places of rare names in a sentence; adjacent ones are one name.

    A name begins with a capital letter, and is a new word, or one that is always copied. At the
    start of a sentence, and in a title, other words have a capital letter, too: there a new word
    needs a further one ("GIMP", "McCoy") or, at the start, a name that follows.
    """
    found, sure, n_lower, first = list[Range](), set[int](), 0, -1
    for match in _CASED_WORD.finditer(text):
        word, (start, end) = match[0], match.span()
        first = start if first < 0 else first
        kind = kind_of(word) if word[0].isupper() and len(word) > 1 else "other"
        n_lower += word[0].islower() or (start == first and kind == "other")
        if kind == "other":
            continue
        if found and text[found[-1][1] : start] in " \u00a0":
            start = found.pop()[0]
        found.append((start, end))
        if kind == "copied" or any(a.isalnum() and b.isupper() for a, b in pairwise(word)):
            sure.add(start)
    is_title = sum(start not in sure for start, _ in found) > n_lower
    return [
        (start, end)
        for start, end in found
        if start in sure or not (is_title or (start == first and " " not in text[start:end]))
    ]


def kinds_of_words(translator: Translator) -> KindOf | None:
    """Tells words by the lexical bias, whatever their case. None if that has no whole words."""
    lexicon = translator.model.lexicon
    if lexicon is None or not len(lexicon.word_keys):
        return None
    # Whether it has all words of the training data: a full table may lack some.
    has_all = bool((lexicon.word_keys == LAST_KEY).any())

    @cache
    def kind_of(word: str) -> Literal["new", "copied", "other"]:
        tokens = translator.src_tokenizer.split(word)
        ids = translator.src_vocabulary.ids(tokens)
        rows = lexicon.rows(np.array([ids]))[0]
        if len(ids) == 1 and word.isalpha():
            return "other"
        # It may have several words: "O'Hara".
        known = zip(tokens, ids, rows.tolist(), strict=True)
        if len(ids) > 1 and any(index == row and has_letters(token) for token, index, row in known):
            return "new" if has_all else "other"
        own = translator.tgt_vocabulary.ids(translator.tgt_tokenizer.split(word))
        probable = lexicon.ids[rows][lexicon.probabilities[rows] >= MIN_COPIED_SUBWORD].tolist()
        return "copied" if {*own} <= {*probable} else "other"

    return kind_of

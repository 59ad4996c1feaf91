"""Finds what a translation must have unchanged: placeholders, tags, numbers, emoji."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Literal

import torch

from nmt.decoding.translator import Translator
from nmt.model.lexical_bias import LAST_KEY, LexicalBias
from nmt.text.tokenizers import has_letters
from nmt.texts.marked import Edge, Kind, Mark, Marked, Sign, in_order
from nmt.texts.patterns import EMOJI, NUMBER, PATTERNS, SIGN
from nmt.texts.word_weights import NO_SPACES, Range

# Read in the places of items until other words are chosen.
ANY_NAME, ANY_NUMBER = "Xxx", "000"
# Languages that write each noun with a capital letter, which then does not tell a name.
NOUNS_IN_CAPITALS = {"de", "lb"}
MIN_COPIED = 0.5  # the probability of each subword of a word that is always copied
# From a word to its kind: new to the model, always copied, or any other.
KindOf = Callable[[str], Literal["new", "copied", "other"]]
_KEPT = [(row.kept, row.pattern) for row in PATTERNS if row.kept is not None]
_SMALL = re.compile(r"\d{1,2}[/'’-]\d|\d[/'’-]\d\d")  # "5-6" and "1/2" are left to the model
_WHOLE_NUMBER = re.compile(rf"{SIGN}(?<![^\W_]){NUMBER}(?![^\W_])")
_LIST_MARK = re.compile(r"\s*(?:(\d\d?\.)|\d\d?\)|[a-z]\)|[-•*–]|#{1,6}|>(?:\s*>)*)\s+(?=\S)")
_LABEL = re.compile(r"(\s*\S*\w\S*(?: \S+){0,3}(?<![\s.!?:]))\s?:\s*")
# Most sentences have nothing of all this.
_HINT = re.compile(
    rf"\d[\d.,:/'’-]*\d|[{{%<&@#$\\`_/\[]|\w\.\w|{EMOJI}|[A-Z\d]-\d|\d-[A-Z]"
    r"|[A-Za-z]\d|\d[A-Za-z]|\B[-:!.]\w|[a-z][+-][A-Z\d]|[€£¥§°]|\*\.|\+\+"
)
_CASED_WORD = re.compile(r"[^\W\d_](?:\w|[-'’](?=[^\W\d_])(?!s\b))*")
# What belongs to an item beside it: "file_%d.txt", "{0}%", "250GB", but not "1990s" and "100th".
_WORD = r"[A-Za-z\d_\u00c0-\u024f\u0370-\u052f]"
_BEFORE = re.compile(rf"(?:{_WORD}+=?|[#@])\Z")
_AFTER = {
    "item": re.compile(rf"(?:{_WORD}+)?(?:\.[a-z]\w{{0,3}}(?!\w))?(?:%%|%(?!\w))?"),
    "number": re.compile(rf"(?!(?:s|st|nd|rd|th|er|ers|e|ème)\b)(?:{_WORD}+)?(?:%%)?"),
}
MAX_BEFORE = MAX_LABEL = 100  # characters
_JOINT = re.compile(r"[/:.,|=+~_\\-]?")  # between two items that are one: "{a}/{b}"
_LETTER = re.compile(rf"[^\W{NO_SPACES}]")  # of scripts that write spaces between words
_WITHOUT_END = {"br", "hr", "img", "input", "wbr"}
# Tags whose other half may stand in another line.
_HTML = (
    "a b body button code div em font form h1 h2 h3 h4 head html i label li ol option p pre span"
    " strong sub sup table td th title tr u ul"
)
_KNOWN = {*_WITHOUT_END, *_HTML.split()}


def signs(text: str, keep: Sequence[re.Pattern[str]] = ()) -> list[Sign]:
    """What stays as it is, in order, each with the characters that it covers. Numbers have three
    digits at least, or are decimals, dates or times.

    Args:
        keep: finds further items.
    """
    if not keep and not _HINT.search(text):
        return []
    found = [
        Sign(match.start(), match[0], kind, len(match[0]))
        for kind, pattern in [*_KEPT, *(("item", pattern) for pattern in keep)]
        for match in pattern.finditer(text)
        if match[0] and not (kind == "number" and _SMALL.fullmatch(match[0]))
    ]
    whole: list[Sign] = []
    for sign in sorted(found, key=lambda sign: (sign.position, -sign.covered)):
        if not whole or sign.position >= whole[-1].end:
            whole.append(sign)
    last_end = 0
    following = [*(sign.position for sign in whole), len(text)][1:]
    for index, end in enumerate(following):
        whole[index] = _with_neighbors(text, whole[index], last_end, end)
        last_end = whole[index].end
    joined = whole[:1]
    for before, sign in pairwise(whole):
        are_items = {before.kind, sign.kind} <= {"item", "number"}
        if are_items and _JOINT.fullmatch(text, before.end, sign.position):
            kind = sign.kind if joined[-1].kind == "number" else joined[-1].kind
            joined[-1] = _sign(text, joined[-1].position, sign.end, kind)
        else:
            joined.append(sign)
    return _with_kinds_of_tags(text, joined)


def _sign(text: str, start: int, end: int, kind: Kind) -> Sign:
    return Sign(start, text[start:end], kind, end - start)


def _with_neighbors(text: str, sign: Sign, first: int, last: int) -> Sign:
    """The item and the letters that touch it, between two places."""
    if sign.kind not in ("item", "number"):
        return sign
    before = _BEFORE.search(text, max(first, sign.position - MAX_BEFORE), sign.position)
    start = sign.position if before is None else before.start()
    after = _AFTER[sign.kind].match(text, sign.end, last)
    return _sign(text, start, sign.end if after is None else after.end(), sign.kind)


def _with_kinds_of_tags(text: str, found: list[Sign]) -> list[Sign]:
    """Tags that do not enclose anything are empty, or placeholders: "Type <name> here"."""
    kinds: list[Kind] = [sign.kind for sign in found]
    is_open: list[tuple[int, str]] = []
    n_open: defaultdict[str, int] = defaultdict(int)
    for index, sign in enumerate(found):
        if sign.kind != "open":
            continue
        name = re.findall(r"[\w:.-]+", sign.written)[0].lower()
        kinds[index] = "empty"
        if sign.written[1] == "/":
            while n_open[name] and kinds[index] == "empty":
                opening, other = is_open.pop()
                n_open[other] -= 1
                if other == name:
                    kinds[opening], kinds[index] = "open", "close"
        elif sign.written[-2] != "/" and name not in _WITHOUT_END:
            is_open.append((index, name))
            n_open[name] += 1
    for index, sign in enumerate(found):
        name = sign.written[1:-1]
        if sign.kind == "open" and kinds[index] == "empty" and name.isidentifier():
            before, after = (
                text[max(sign.position - 1, 0) : sign.position],
                text[sign.end : sign.end + 1],
            )
            if name.lower() not in _KNOWN and not before.strip() and not after.isalnum():
                kinds[index] = "item"
    return [replace(sign, kind=kind) for sign, kind in zip(found, kinds, strict=True)]


def without_signs(marked: Marked, keep: Sequence[re.Pattern[str]] | None) -> Marked:
    """A text with its tags taken off, and a word in the place of each item.

    Args:
        keep: finds further items; with None there are no items but those that are marks.
    """
    found = [] if keep is None else signs(marked.text, keep)
    if not found and not marked.marks:
        return marked
    parts = list[str]()
    marks = list[Mark]()
    length = position = 0  # of the new text; in the old one
    for mark in in_order([*_outside(marked.marks, found), *found]):
        part = marked.text[position : mark.position]
        written = mark.written
        position = mark.end
        following = marked.text[position : position + 1]
        word = ""
        if mark.kind in ("item", "number"):
            is_after_item = not part and bool(marks) and marks[-1].covered > 0
            before = (part or "".join(parts[-1:]))[-1:]
            touches = is_after_item or _LETTER.match(before) or _LETTER.match(following)
            if isinstance(mark, Sign) or (written and not touches):
                word = ANY_NUMBER if mark.kind == "number" else ANY_NAME
        elif isinstance(mark, Sign) and mark.kind == "empty" and following.isspace():
            # Between two spaces: one of them goes with it.
            stripped = part.rstrip() if length or part.strip() else part
            written = part[len(stripped) :] + written
            part = stripped
        length += len(part)
        marks.append(replace(mark, position=length, written=written, covered=len(word)))
        _join_element(marks)
        parts += [part, word]
        length += len(word)
    return Marked("".join([*parts, marked.text[position:]]), tuple(marks))


def _outside(marks: Sequence[Mark], found: Sequence[Sign]) -> Iterator[Mark]:
    """The marks of a text, none inside of what was found."""
    starts = [sign.position for sign in found]
    last = 0
    for mark in marks:
        place = mark.position
        for sign in found[max(bisect_left(starts, place) - 1, 0) :][:1]:
            if sign.position < place < sign.end:
                place = sign.end if mark.kind == "close" else sign.position
        last = max(place, last)
        yield replace(mark, position=last)


def _join_element(marks: list[Mark]) -> None:
    """If the last marks are an element around nothing but an item, they become one."""
    if [mark.kind for mark in marks[-3:]] != ["open", "item", "close"]:
        return
    opening, item, closing = marks[-3:]
    if item.covered and (opening.position, closing.position) == (item.position, item.end):
        inside = "".join(each.written for each in marks[-3:])
        marks[-3:] = [replace(item, written=inside, parts=(opening, item, closing))]


def without_edges(marked: Marked, *, ordinals: bool) -> Marked:
    """A sentence whose "1. ", "a) " or "- " at the start is a mark, or the colon after a label.

    ordinals: "1." may be one.
    """
    label = _LABEL.fullmatch(marked.text) if len(marked.text) <= MAX_LABEL else None
    if label and all(mark.end <= label.end(1) for mark in marked.marks):
        colon = marked.text[label.end(1) :]
        marked = Marked(label[1], (*marked.marks, Edge(len(label[1]), colon, "empty")))
    found = _LIST_MARK.match(marked.text)
    if (
        found is None
        or (ordinals and found[1])
        or any(mark.position < found.end() for mark in marked.marks)
    ):
        return marked
    size = found.end()
    rest = (replace(mark, position=mark.position - size) for mark in marked.marks)
    return Marked(marked.text[size:], (Edge(0, found[0], "empty"), *rest))


def with_numbers(marked: Marked) -> Marked:
    """The same with each number as an item, those of one digit, too."""
    return with_items(
        marked, (each.span() for each in _WHOLE_NUMBER.finditer(marked.bare)), "number"
    )


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
    lexicon = lexical_bias(translator)
    if not (lexicon and lexicon.n_words):
        return None
    # Whether it has all words of the training data: a full table may lack some.
    has_all = bool((lexicon.word_keys == LAST_KEY).any())

    @cache
    def kind_of(word: str) -> Literal["new", "copied", "other"]:
        tokens = translator.src_tokenizer.split(word)
        ids = translator.src_vocabulary.ids(tokens)
        rows = lexicon.rows(torch.tensor([ids], device=lexicon.ids.device))[0]
        if len(ids) == 1 and word.isalpha():
            return "other"
        # It may have several words: "O'Hara".
        known = zip(tokens, ids, rows.tolist(), strict=True)
        if len(ids) > 1 and any(index == row and has_letters(token) for token, index, row in known):
            return "new" if has_all else "other"
        own = translator.tgt_vocabulary.ids(translator.tgt_tokenizer.split(word))
        probable = lexicon.ids[rows][lexicon.probabilities[rows] >= MIN_COPIED].tolist()
        return "copied" if {*own} <= {*probable} else "other"

    return kind_of


def lexical_bias(translator: Translator) -> LexicalBias | None:
    """That of the first model that has one."""
    found = (part for part in translator.model.modules() if isinstance(part, LexicalBias))
    return next(found, None)

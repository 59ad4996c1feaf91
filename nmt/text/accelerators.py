"""Marks of accelerators, the keys that choose an entry of a menu: `_File`, `E&xit`, `保存(_S)`.

What only looks like one, as in `user_id`, `R&D` and `&amp;`, is told apart by the word around it,
by the words of the file, or by the other side of a pair.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Chinese, Japanese and Korean: no key has these letters.
_CJK = "\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
_LETTER = rf"[^\s!-/:-@\[-`{{-¿×÷\u2000-\u206f{_CJK}]"  # or a digit, or a sign of Arabic vowels
_HAS_CJK = re.compile(f"[{_CJK}]")
_ITEM = (
    r"<[^<>]{0,999}>|&\#?\w{1,9};|&&|%\(\w{1,99}\)\w?|[$%\#@]?\{[^{}]{0,99}\}|\b[a-z]{2,9}://\S+"
)
_MARK = re.compile(
    rf"""\s?[(（]\s?(?P<bracketed>[_&])(?P<key>[^\W_])\s?[)）] | {_ITEM}
    | (?<!{_LETTER})(?<![_&\\@%$\#{{<=~])(?<!--)
      (?P<word>{_LETTER}*+(?:(?!&\w{{1,9}};)[_&]{_LETTER}++)+)(?![_&=@\\(])""",
    re.VERBOSE,
)
_WORD = re.compile(rf"{_LETTER}+(?:[_&]{_LETTER}+)*")
_AT_START = re.compile(r"(?<![^\s\"'>=])([_&])(?:amp;)?(?=[^\W_])")  # in the raw text of a file
_PLACE = re.compile(
    rf"""{_ITEM} | %(?:\d+\$)?[-+\#\d.]*[hjlqtz]*[A-Za-z] | [$@:]\w+
    | (?<![_&])(?<!{_LETTER})(?P<word>{_LETTER}++)(?![_&])""",
    re.VERBOSE,
)
_SHORTCUT = re.compile(r"\t|\s*[(（]?\b(?:Ctrl|Strg|Alt|Shift|Cmd|Command)\s?\+")  # behind a label
_END = re.compile(r"\s*(?:\.{3}|…+|[:：])?\s*\Z")
N_USUAL = 5  # marks at the start of words, for which one inside of an unknown word is likely
N_LABEL = 10  # words
MAX_CHARACTERS = 500  # of a text with an accelerator


class Words:
    """The words of a file, which tell `fi_le` from `user_id`.

    Attributes:
        usual: the marks that the file has often.
    """

    def __init__(self, content: str) -> None:
        self.known = {word for word in _WORD.findall(content.lower()) if word.isalpha()}
        marks = _AT_START.findall(content)
        self.usual = {mark for mark in "_&" if marks.count(mark) >= N_USUAL}

    def expect(self, found: "Accelerator", text: str) -> bool:
        """Whether a label has a mark here, and not two words with `_` between."""
        parts = found.word.split(found.mark)
        is_even = found.word == found.word.lower() or 1 in map(len, parts)  # no name as VIDEO_TS
        is_label = is_even and "%" not in text and len(text.split()) <= N_LABEL
        return found.mark in self.usual and is_label and not {*parts} <= self.known


@dataclass(frozen=True)
class Accelerator:
    """What may be the mark of one.

    Attributes:
        place: of the mark. start, end: of the brackets around it; 0 without.
        word: around it. is_clear: whether the text alone says so.
    """

    place: int
    mark: str
    key: str
    start: int = 0
    end: int = 0
    word: str = ""
    is_clear: bool = True


def split_accelerator(text: str, words: Words | None = None) -> tuple[str, str]:
    """A text without the mark of its accelerator; the mark with its key, such as "_S", or ""."""
    likely = _candidates(text, words)
    found = _chosen(likely)
    if not found and words is not None and len(likely) == 1 and words.expect(likely[0], text):
        found = likely
    return (
        _without(text, found, is_whole=_HAS_CJK.search(text) is not None),
        "".join(each.mark + each.key for each in found[:1]),
    )


def without_accelerators(src: str, tgt: str, words: Words | None = None) -> tuple[str, str]:
    """The texts of a pair without the marks. A letter in brackets stays if both have it there."""
    found = find_accelerators(src, tgt, words)
    is_whole = not all(any(each.end for each in side) for side in found)
    return _without(src, found[0], is_whole=is_whole), _without(tgt, found[1], is_whole=is_whole)


def find_accelerators(
    src: str, tgt: str, words: Words | None = None
) -> tuple[Sequence[Accelerator], Sequence[Accelerator]]:
    """The marks of a pair. One that is not clear needs one in the other text, and another word.

    words: of the file with both.
    """
    sides = _candidates(src, words), _candidates(tgt, words)
    doubtful = [{each.word for each in side if not each.is_clear} for side in sides]
    shared = doubtful[0] & doubtful[1]
    likely = [[each for each in side if each.word not in shared] for side in sides]
    of_src, of_tgt = map(_chosen, sides)
    if not of_src and len(likely[0]) == 1 and likely[1]:
        of_src = likely[0]
    return of_src, (likely[1] if of_src else of_tgt)


def with_accelerator(text: str, accelerator: str) -> str:
    """A translation with the mark of its source: before the same letter where a word begins with
    it, or before the first one; in brackets behind a text of Chinese, Japanese or Korean. There is
    none in a shortcut behind the label.
    """
    mark = accelerator[0]
    key = accelerator[1:]
    label = _SHORTCUT.split(text, 1)[0] or text
    if found := re.search(rf"[(（](?={key}[)）])", text, re.IGNORECASE):
        place = found.end()
    elif _HAS_CJK.search(label) and (end := _END.search(label)):
        mark, place = f"({mark}{key.upper()})", end.start()
    else:
        place = min(
            (each.start() for each in _PLACE.finditer(label) if each["word"]),
            key=lambda start: (text[start].lower() != key.lower(), not text[start].isalpha()),
            default=-1,
        )
    return text if place < 0 else text[:place] + mark + text[place:]


def _candidates(text: str, words: Words | None) -> list[Accelerator]:
    if len(text) > MAX_CHARACTERS or ("_" not in text and "&" not in text):
        return []
    found = []
    for match in _MARK.finditer(text):
        if mark := match["bracketed"]:
            place = match.start("bracketed")
            found.append(Accelerator(place, mark, match["key"], *match.span()))
        elif match["word"]:
            found += _inside(text, match["word"], match.start(), words)
    return found


def _inside(text: str, word: str, start: int, words: Words | None) -> Iterator[Accelerator]:
    """Those of a word, which begins at `start`."""
    parts = re.split("[_&]", word)
    end = text[start + len(word) :]
    is_path = text.endswith(("/", "."), 0, start)
    is_path |= parts[0] != "" and (text.endswith(":", 0, start) or bool(re.match(r"\.\w", end)))
    for match in re.finditer("[_&]", word):
        head, mark, tail = word[: match.start()], match[0], word[match.end() :]
        is_clear = len(parts) == 2 and not is_path
        if head and (word.isascii() or word.isupper()):
            is_known = words is not None and (head + tail).lower() in words.known
            # Costa_Rica, KP_Tab; R&D; g_io_channel
            is_name = tail[0].isupper() and (head[-1].islower() or tail[1:2].islower())
            is_name |= mark == "&" and (head + tail).isupper() and not is_known
            if is_name or (parts[0] and len(parts) > 2):
                continue
            is_clear &= is_known or (head.istitle() and tail[0].islower())
        yield Accelerator(start + match.start(), mark, tail[0], word=word, is_clear=is_clear)


def _chosen(found: Sequence[Accelerator]) -> Sequence[Accelerator]:
    """What a text alone says: those in brackets, or the only clear one."""
    bracketed = [each for each in found if each.end]
    clear = [each for each in found if each.is_clear]
    return bracketed or (clear if len(clear) == 1 else [])


def _without(text: str, found: Sequence[Accelerator], *, is_whole: bool) -> str:
    """is_whole: whether brackets leave, too, with the key."""
    for each in sorted(found, key=lambda each: -each.place):
        is_cut = is_whole and each.end > 0
        start = each.start if is_cut else each.place
        text = text[:start] + text[each.end if is_cut else start + 1 :]
    return text.replace("&&", "&")

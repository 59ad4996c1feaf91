"""Terms that must be translated as a glossary says: where texts have them. It needs no model."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from nmt.errors import DataError
from nmt.files import MAX_TEXT_BYTES
from nmt.lines import read_lines
from nmt.text.tokenizers import NO_SPACES, normalize
from nmt.texts.word_weights import WORD

# "Hunden" is the term "Hund", but "Handy" is not "Hand".
_ENDING = r"(?:e?[nms]|e)?"
_LETTER = rf"(?:(?![{NO_SPACES}])[\w-])"  # of a word


@dataclass(frozen=True)
class Term:
    """A term in a text, at these characters, as it is written, and its translation.

    is_inflected: it is not the first form that the glossary has for it.
    """

    start: int
    end: int
    source: str
    target: str
    is_inflected: bool = False


class Glossary:
    """The translation of terms."""

    def __init__(self, entries: Iterable[tuple[str, str, str]]) -> None:
        """Entries: (place for messages, source, target). Raises: DataError."""
        self._targets: dict[str, tuple[str, bool]] = {}  # with whether it is inflected
        for place, forms, written in entries:
            target = normalize(written)
            for number, form in enumerate(forms.split("|")):
                source = " ".join(map(normalize, WORD.findall(form)))
                if not source or not target:
                    raise DataError(f"{place}: a side of the term is empty")
                # "IT" is not "it".
                key = source if source.isupper() and len(source) > 1 else source.lower()
                known, _ = self._targets.setdefault(key, (target, number > 0))
                if known != target:
                    raise DataError(
                        f"{place}: {source!r} has two translations, {known!r} and {target!r}; keep "
                        "one"
                    )
        self._longest = max((len(key.split()) for key in self._targets), default=1)

    @classmethod
    def read(cls, path: Path) -> Self:
        """A file of lines "source<TAB>target"; "dog|dogs" are forms of a source; # comments.

        Raises:
            DataError: the file cannot be read, or a line is no term; the message has its number.
        """
        entries = []
        for number, line in enumerate(read_lines(path, max_bytes=MAX_TEXT_BYTES), 1):
            if line.strip() and not line.startswith("#"):
                source, *targets = line.split("\t")
                if len(targets) != 1:
                    raise DataError(
                        f"{path}, line {number}: expected a term, a tab and its translation, found "
                        f"{line!r}"
                    )
                entries.append((f"{path}, line {number}", source, targets[0]))
        return cls(entries)

    @classmethod
    def of(cls, terms: Mapping[str, str]) -> Self:
        """Source -> target. Raises: DataError if a side is empty, or forms contradict."""
        return cls((f"glossary, {source!r}", source, terms[source]) for source in terms)

    def terms_in(self, text: str) -> list[Term]:
        """The terms of a source, in their order; the longest that begins with a word."""
        spans = [match.span() for match in WORD.finditer(text)]
        words = [normalize(text[slice(*span)]) for span in spans]
        found, first = list[Term](), 0
        while first < len(words):
            for after in range(min(first + self._longest, len(words)), first, -1):
                part = " ".join(words[first:after])
                known = self._targets.get(part) or self._targets.get(part.lower())
                if known is not None:
                    target, is_inflected = known
                    start, end = spans[first][0], spans[after - 1][1]
                    is_inflected = is_inflected or text[end : end + 1] in ("'", "’")
                    found.append(Term(start, end, text[start:end], target, is_inflected))
                    break
            first = after  # the end of the term, or of the first word
        return found

    def whole(self, text: str) -> str | None:
        """The translation of a text that is a term alone, with capitals where it has them."""
        text = text.strip()
        match self.terms_in(text):
            case [Term(source=source, target=target)] if source == text:
                if text.isupper() and text not in self._targets:
                    return target.upper()
                return target[0].upper() + target[1:] if text[0].isupper() else target
        return None


def missing(terms: Sequence[Term], text: str, *, is_exact: bool = False) -> Counter[str]:
    """How often a translation must have the target of each term once more.

    is_exact: an ending may follow only those whose source is inflected, too.
    """
    wanted = Counter(term.target for term in terms)
    exact = {term.target for term in terms if is_exact and not term.is_inflected}
    return wanted - Counter(target for _, _, target in present(wanted, text, exact))


def present(
    targets: Collection[str], text: str, exact: Collection[str] = ()
) -> list[tuple[int, int, str]]:
    """Where a translation has terms as whole words, perhaps with an ending, and which. The first
    letter may be a capital. exact: no ending may follow these.
    """
    if not targets:
        return []
    longest_first = sorted(targets, key=len, reverse=True)
    forms = (
        rf"((?:{re.escape(target[0])}|{re.escape(target[0].upper())}){re.escape(target[1:])}"
        rf"{_ENDING if len(target) > 3 and target not in exact else ''})"
        for target in longest_first
    )
    # All letters of some models, and of headings, have the same case.
    flags = re.IGNORECASE if text.islower() or text.isupper() else re.NOFLAG
    pattern = re.compile(rf"(?<!{_LETTER})(?:{'|'.join(forms)})(?!{_LETTER})", flags)
    return [
        (*match.span(), longest_first[(match.lastindex or 1) - 1])
        for match in pattern.finditer(text)
    ]

"""What a comparison of translations with their sources finds. It needs no model."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import log
from statistics import mean, median

from nmt.text.accelerators import Words, find_accelerators, without_accelerators
from nmt.texts.differences import differences
from nmt.texts.glossary import Glossary, missing
from nmt.texts.items import without_signs
from nmt.texts.marked import Marked
from nmt.texts.sentences import END_MARKS, most_sentences, n_sentences

MIN_CHARACTERS = 20  # of a text whose length tells something
SLACK = 10  # characters, which count little in long texts
MAX_RATIO = 2.0  # between the length of a translation and what is usual in its file
FULL_LENGTH = 0.9  # of what is usual: such a translation has lost no sentence
_TAG = re.compile(r"</?\w[^<>]*>")
_PROBLEMS = {
    "missing": "{} is missing",
    "extra": "{} is not in the source",
    "surplus": "{} is there more often than in the source",
    "misplaced": "{} closes a tag that is not open",
    "moved": "{} takes the value of another placeholder: the order differs",
}


@dataclass(frozen=True)
class Text:
    """A source and its translation, with marks of accelerators. line: in the file of the
    translation. is_form: whether it is one of several plural forms.
    """

    line: int
    source: Marked
    translation: Marked
    is_form: bool = False


@dataclass(frozen=True)
class Finding:
    """What is wrong with a text. kind: that of an item, or empty, untranslated, accelerator, term,
    length or sentences.
    """

    text: Text
    kind: str
    problem: str


def find_all(texts: Sequence[Text], glossary: Glossary | None = None) -> Iterator[Finding]:
    """All findings, in the order of the texts."""
    words = Words("\n".join(f"{text.source.text}\n{text.translation.text}" for text in texts))
    plain = [
        without_accelerators(_plain(text.source), _plain(text.translation), words) for text in texts
    ]
    ratios = [len(own) / len(src) for src, own in plain if own and len(src) >= MIN_CHARACTERS]
    usual = median(ratios) if ratios else 1.0
    ends = [own[-1] in END_MARKS for src, own in plain if own and src and src[-1] in END_MARKS]
    marks_ends = sum(ends) >= len(ends) / 2  # whether the target language does

    def find(text: Text, source: str, own: str) -> Iterator[tuple[str, str]]:
        if not source or not own:
            if any(map(str.isalnum, source + own)):
                yield "empty", "there is no translation" if source else "there is no source"
            return
        if source.casefold().split() == own.casefold().split() and _has_prose(source):
            yield "untranslated", "is the same as the source"
        found = [*_differences(text.source.written, text.translation.written, words)]
        lost = [kind for kind, problem in found if problem.endswith(" is missing")]
        if not (text.is_form and lost == ["placeholder"] and len(found) == 1):
            yield from found
        bare = without_signs(Marked(source), ()).bare  # "{dog}" has no term
        for term in missing(glossary.terms_in(bare), own) if glossary is not None else ():
            yield "term", f"the term {term} is missing"
        ratio = (len(own) + SLACK) / (usual * len(source) + SLACK)
        if not 1 / MAX_RATIO <= ratio <= MAX_RATIO:
            size = "short" if ratio < 1 else "long"
            yield "length", f"is very {size}: {len(own)} characters for {len(source)}"
        n, n_most = n_sentences(source), most_sentences(own)
        if marks_ends and n_most < n and ratio < FULL_LENGTH:
            yield "sentences", f"seems to have {n_most} of {n} sentences"

    for text, pair in zip(texts, plain, strict=True):
        yield from (Finding(text, *found) for found in find(text, *pair))


def first_difference(sources: Sequence[Marked], translations: Sequence[Marked]) -> int:
    """The index from which on the texts of two files belong to others, if one has more, as far as
    lengths, items and sentences tell: where its further texts are best left out.
    """
    shorter, longer = sorted((sources, translations), key=len)
    sizes = [mean([len(each.text) + 1 for each in texts] or [1]) for texts in (shorter, longer)]
    usual = sizes[1] / sizes[0]

    def sums(texts: Sequence[Marked]) -> list[float]:
        """What the first 0, 1, 2, ... pairs cost."""
        costs = (
            abs(log((len(one.text) + 5) / (usual * len(other.text) + 5)))
            + bool(differences(one.written, other.written))
            + (n_sentences(one.text) != n_sentences(other.text))
            for one, other in zip(texts, shorter, strict=False)
        )
        return [*accumulate(costs, initial=0.0)]

    as_is, moved = sums(longer), sums(longer[len(longer) - len(shorter) :])
    return min(range(len(as_is)), key=lambda i: as_is[i] + moved[-1] - moved[i])


def _differences(source: str, translation: str, words: Words) -> Iterator[tuple[str, str]]:
    wanted, found = find_accelerators(source, translation, words)
    if wanted and not found:
        yield "accelerator", f"the mark {wanted[0].mark} of the accelerator is missing"
    elif found and not wanted:
        yield "accelerator", f"the mark {found[0].mark} of an accelerator is not in the source"
    elif len(found) > len(wanted):
        yield "accelerator", f"has {len(found)} marks of accelerators"
    elif found and found[0].mark != wanted[0].mark:
        yield "accelerator", f"has the mark {found[0].mark}, and the source {wanted[0].mark}"
    for each in differences(*without_accelerators(source, translation, words)):
        name = f"the number {each.text}" if each.kind == "number" else each.text
        yield each.kind, _PROBLEMS[each.problem].format(name)


def _plain(text: Marked) -> str:
    """What a reader sees."""
    return _TAG.sub("", text.text).strip()


def _has_prose(text: str) -> bool:
    """Whether it is more than names and signs: three words, of which two have no capital letters;
    or in a script without them.
    """
    words = [word for word in text.split() if word.isalpha()]
    n_caseless = sum(letter.lower() == letter.upper() for letter in filter(str.isalpha, text))
    return (len(words) > 2 and sum(map(str.islower, words)) > 1) or n_caseless > 5

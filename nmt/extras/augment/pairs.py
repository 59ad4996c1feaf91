"""Synthetic pairs, with one side translated by a model, beside the original pairs.

- Translations of the training sentences by several models in both directions: data
  diversification (Nguyen et al. 2020, arXiv 1911.01986, algorithm 1); of the training sources
  alone: sequence-level distillation (Kim and Rush 2016, arXiv 1606.07947).
- Translations of other text in the target language: back-translation (Sennrich et al. 2016, arXiv
  1511.06709), with an optional tag before the source (Caswell et al. 2019, arXiv 1906.06442); in
  the source language: self-training.

No sentence of dev or test enters, on either side: the rule of the split, with the same keys (see
`nmt.data.splitting`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from nmt.config.schema import CleaningConfig
from nmt.data import reading
from nmt.data.corpus import Corpus, Sequences, SequencesWriter
from nmt.data.reading import Pair
from nmt.data.splitting import fingerprint, sentence_key
from nmt.run.leaks import HeldOut
from nmt.text.tokenizers import SIDES
from nmt.text.vocabulary import SPECIALS, UNK

# The origins of training pairs.
ORIGINAL, FORWARD, BACKWARD = "original", "forward", "backward"
SELF_TRAINING, BACK_TRANSLATION = "self-training", "back-translation"
ORIGINS = (ORIGINAL, FORWARD, BACKWARD, SELF_TRAINING, BACK_TRANSLATION)
# Why a sentence is not translated.
EMPTY_SENTENCE = "empty sentence"
SAME_SENTENCE = "repeated sentence"
UNKNOWN_WORDS = "unknown words"
# Why a pair is dropped, in addition to the reasons of `reading`.
TRUNCATED = "truncated"
REPEATING = "repeats itself"
HELD_OUT = "in dev or test"
ORIGINAL_PAIR = "copy of an original pair"
SYNTHETIC_PAIR = "copy of a synthetic pair"


@dataclass(frozen=True)
class Sentences:
    """Different sentences to translate. n_read: before the selection. dropped: why others left."""

    texts: list[str]
    n_read: int
    dropped: Counter[str]


def select_sentences(texts: Iterable[str], held_out: Set[str], config: CleaningConfig) -> Sentences:
    """Each different text once, in order, without those that cannot make a pair.

    Args:
        held_out: keys of the dev and test sentences in this language.
    """
    selected: dict[str, None] = {}
    dropped: Counter[str] = Counter()
    n_read = 0
    for text in texts:
        n_read += 1
        if not text:
            dropped[EMPTY_SENTENCE] += 1
        elif text in selected:
            dropped[SAME_SENTENCE] += 1
        elif SPECIALS[UNK] in text:
            dropped[UNKNOWN_WORDS] += 1
        elif len(text) > config.max_characters:
            dropped[reading.TOO_LONG] += 1
        elif sentence_key(text) in held_out:
            dropped[HELD_OUT] += 1
        else:
            selected[text] = None
    return Sentences([*selected], n_read, dropped)


@dataclass
class PairFilter:
    """Drops synthetic pairs that are empty, too long, in dev or test, or copies of an earlier pair.

    original: the original pairs as text.
    """

    original: Iterable[Pair]
    held_out: HeldOut
    config: CleaningConfig
    _known: dict[bytes, str] = field(init=False)  # fingerprint of a pair -> why to drop its copies

    def __post_init__(self) -> None:
        self._known = {_pair_fingerprint(pair): ORIGINAL_PAIR for pair in self.original}

    def drop_reason(self, pair: Pair) -> str | None:
        """Why to drop a pair of normalized sentences, or None to keep it."""
        reason = reading.drop_reason(*pair, self.config)
        if reason is not None:
            return reason
        if sentence_key(pair[0]) in self.held_out.src or sentence_key(pair[1]) in self.held_out.tgt:
            return HELD_OUT
        key = _pair_fingerprint(pair)
        if key in self._known:
            return self._known[key]
        self._known[key] = SYNTHETIC_PAIR
        return None


def write_training_data(folder: Path, parts: Sequence[tuple[Corpus, int]]) -> None:
    """Write `train.src` and `train.tgt`: each corpus as often as its number says, in order."""
    for side in SIDES:
        streams: list[Sequences] = [
            getattr(corpus, side) for corpus, count in parts for _ in range(count)
        ]
        with SequencesWriter(folder / f"train.{side}", sum(map(len, streams))) as writer:
            for stream in streams:
                for block in stream.blocks():
                    writer.write(*block)


def _pair_fingerprint(pair: Pair) -> bytes:
    return fingerprint("\t".join(pair))

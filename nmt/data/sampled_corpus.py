"""Training data with subword sampling: each epoch sees other segmentations of the same text.

The sample of a sentence depends only on the seed, the epoch, the side and the index of the
sentence, so a resumed training and all its processes see the same samples. A part of an epoch is
drawn before it starts, so its batches are planned with the true lengths.
"""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice, pairwise, starmap

import numpy as np

from nmt.config.schema import Config
from nmt.data import soft_targets
from nmt.data.corpus import Block, Corpus, Sequences
from nmt.data.epochs import Part
from nmt.data.splitting import random_keys
from nmt.data.subword_sampling import SAMPLERS, SubwordSampler
from nmt.text.tokenizers import SIDES, Side, load_pieces
from nmt.text.vocabulary import Vocabulary


class SampledCorpus(Corpus):
    """A corpus that is segmented again for each epoch. The samples of two parts of an epoch are in
    memory.

    Args:
        corpus: with the segmentations of the tokenizer.
        samplers: for one side or both.
    """

    def __init__(self, corpus: Corpus, samplers: Mapping[Side, SubwordSampler], seed: int) -> None:
        super().__init__(corpus.src, corpus.tgt, corpus.soft_targets)
        self._samplers, self._seed = samplers, seed

    def in_part(self, part: Part) -> Corpus:
        return self._join(part, starmap(self._sample, self._blocks(part)))

    def in_parts(self, parts: Iterable[Part]) -> Iterator[tuple[Part, Corpus]]:
        """A thread draws the next part while the caller uses the present one."""
        thread = ThreadPoolExecutor(1, "subword sampling")
        draws: Iterator[tuple[Part, list[Future[Block]]]]
        draws = (
            (part, [thread.submit(self._sample, *block) for block in self._blocks(part)])
            for part in parts
        )
        try:
            for draw, _ in pairwise(chain(draws, [None])):
                assert draw is not None
                part, blocks = draw
                sentences = self._join(part, (block.result() for block in blocks))
                blocks.clear()  # `sentences` is a copy
                yield part, sentences
        finally:
            thread.shutdown(cancel_futures=True)

    def _blocks(self, part: Part) -> list[tuple[Side, int, int, int]]:
        return [
            (side, part.epoch, start, end) for side in self._samplers for start, end in part.ranges
        ]

    def _sample(self, side: Side, epoch: int, start: int, end: int) -> Block:
        sequences = self.src if side == "src" else self.tgt
        ids, lengths = sequences.block(start, end)
        indices = np.arange(start, end, dtype=np.uint64)
        return self._samplers[side].sample(
            ids, lengths, random_keys(indices, self._seed, f"{side} subwords, epoch {epoch}")
        )

    def _join(self, part: Part, blocks: Iterable[Block]) -> Corpus:
        remaining, fixed = iter(blocks), super().in_part(part)
        sides = {
            side: Sequences.of_blocks(list(islice(remaining, len(part.ranges))))
            for side in self._samplers
        }
        return Corpus(sides.get("src", fixed.src), sides.get("tgt", fixed.tgt), fixed.soft_targets)


def load_training_corpus(config: Config) -> Corpus:
    """The training data of the prepared folder, with soft targets and subword sampling if they are
    configured.

    Raises:
        DataError: a file is missing or damaged, or there are no soft targets.
    """
    folder, rates = config.prepared_folder, config.training.subword_sampling
    corpus = Corpus.load(folder, "train")
    if config.training.distillation:
        corpus = Corpus(corpus.src, corpus.tgt, soft_targets.load(folder, corpus))
    samplers = {
        side: SAMPLERS[config.tokenizer.kind](
            load_pieces(folder, side), Vocabulary.load(folder / f"{side}.vocab.txt"), rate
        )
        for side, rate in zip(SIDES, (rates.src, rates.tgt), strict=True)
        if rate
    }
    return SampledCorpus(corpus, samplers, config.seed) if samplers else corpus

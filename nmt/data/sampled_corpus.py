"""Training data with subword sampling: each epoch sees other segmentations of the same text.

The sample of a sentence depends only on the seed, the epoch, the side and the index of the sentence, so a resumed training and all
its processes see the same samples. An epoch is drawn before it starts, so its batches are planned with the true lengths.
"""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice, pairwise, starmap

import numpy as np

from nmt.config.schema import Config
from nmt.data.corpus import Block, Corpus, Sequences
from nmt.data.splitting import random_keys
from nmt.data.subword_sampling import SAMPLERS, SubwordSampler
from nmt.text.tokenizers import SIDES, Side, load_pieces
from nmt.text.vocabulary import Vocabulary

BLOCK_SENTENCES = 4096  # drawn at once


class SampledCorpus(Corpus):
    """A corpus that is segmented again for each epoch. The samples of two epochs are in memory.

    Args:
        corpus: with the segmentations of the tokenizer.
        samplers: for one side or both.
    """

    def __init__(self, corpus: Corpus, samplers: Mapping[Side, SubwordSampler], seed: int) -> None:
        super().__init__(corpus.src, corpus.tgt)
        self._samplers, self._seed = samplers, seed
        self._starts = range(0, len(corpus), BLOCK_SENTENCES)

    def in_epoch(self, epoch: int) -> Corpus:
        return self._join(starmap(self._sample, self._blocks(epoch)))

    def in_epochs(self, epochs: Iterable[int]) -> Iterator[tuple[int, Corpus]]:
        """A thread draws the next epoch while the caller uses the present one."""
        thread = ThreadPoolExecutor(1, "subword sampling")
        draws: Iterator[tuple[int, list[Future[Block]]]]
        draws = ((epoch, [thread.submit(self._sample, *block) for block in self._blocks(epoch)]) for epoch in epochs)
        try:
            for (epoch, blocks), _ in pairwise(chain(draws, [(0, [])])):
                sentences = self._join(block.result() for block in blocks)
                blocks.clear()  # `sentences` is a copy
                yield epoch, sentences
        finally:
            thread.shutdown(cancel_futures=True)

    def _blocks(self, epoch: int) -> list[tuple[Side, int, int]]:
        return [(side, epoch, start) for side in self._samplers for start in self._starts]

    def _sample(self, side: Side, epoch: int, start: int) -> Block:
        sequences = self.src if side == "src" else self.tgt
        ids, lengths = sequences.block(start, start + BLOCK_SENTENCES)
        indices = np.arange(start, start + len(lengths), dtype=np.uint64)
        return self._samplers[side].sample(ids, lengths, random_keys(indices, self._seed, f"{side} subwords, epoch {epoch}"))

    def _join(self, blocks: Iterable[Block]) -> Corpus:
        remaining = iter(blocks)
        sides = {side: Sequences.of_blocks(list(islice(remaining, len(self._starts)))) for side in self._samplers}
        return Corpus(sides.get("src", self.src), sides.get("tgt", self.tgt))


def load_training_corpus(config: Config) -> Corpus:
    """The training data of the prepared folder, with subword sampling if it is configured.

    Raises:
        DataError: a file is missing or damaged.
    """
    folder, rates = config.prepared_folder, config.training.subword_sampling
    corpus = Corpus.load(folder, "train")
    samplers = {
        side: SAMPLERS[config.tokenizer.kind](load_pieces(folder, side), Vocabulary.load(folder / f"{side}.vocab.txt"), rate)
        for side, rate in zip(SIDES, (rates.src, rates.tgt), strict=True)
        if rate
    }
    return SampledCorpus(corpus, samplers, config.seed) if samplers else corpus

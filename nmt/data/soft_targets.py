"""Soft targets: for each token of the target sentences, the distribution that other models give
there (Kim and Rush 2016, 3.1).

Of each distribution, the `N_WORDS` most probable words are kept. `train.soft-targets.npy` has the
layout of `nmt.data.corpus`. For each token, with <eos> as the last, it holds the ids of these
words, then their probabilities in units of `UNIT`.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from nmt.data.corpus import Corpus, Ids, Sequences
from nmt.errors import DataError

STEM = "train.soft-targets"
N_WORDS = 16
UNIT = 2.0**-30


def pack(ids: npt.NDArray[np.int64], probabilities: npt.NDArray[np.float32]) -> Ids:
    """[T, K] each, for the T tokens of a sentence -> [2 T K], as it is stored."""
    return np.concatenate([ids, np.floor(probabilities / UNIT)], 1).astype(np.int32).ravel()


def unpack(sentence: Ids, n_tokens: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """The inverse of `pack`: ids and probabilities, [T, K] each."""
    ids, units = np.split(sentence.reshape(n_tokens, -1), 2, axis=1)
    return ids.astype(np.int64), units.astype(np.float32) * np.float32(UNIT)


def load(folder: Path, corpus: Corpus) -> Sequences:
    """The soft targets of `corpus`, the training data of a prepared folder. Raises: DataError if
    they are missing or damaged.
    """
    if not (folder / f"{STEM}.npy").exists() and not any(folder.glob("train-*.soft-targets.npy")):
        text = (
            f"training.distillation: {folder} has no soft targets; write a folder that has "
            "them with `nmt augment --teacher`"
        )
        raise DataError(f"{text}, or set it to 0")
    sentences = Sequences.load(folder / STEM)
    n_tokens = corpus.tgt.n_tokens + len(corpus)
    if (
        len(sentences) != len(corpus)
        or sentences.n_tokens == 0
        or sentences.n_tokens % (2 * n_tokens)
    ):
        raise DataError(
            f"{folder / STEM}.npy: damaged, it does not fit the training data; run `nmt "
            "augment "
            "--teacher ... --overwrite`"
        )
    return sentences

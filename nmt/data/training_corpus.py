"""The training data as a training reads it: with soft targets, and with `<unk>` for rare words.

Where each word of the training data is in the vocabulary, words that occur once are shown as
`<unk>` in some pairs. Without that, the vectors of `<unk>` keep their random start, and a new name
is translated by another one. Dyer et al. 2015 (arXiv 1505.08075, 3.2) replace words that occur once
in this way.
"""

from pathlib import Path

import numpy as np

from nmt.config.parts import TOKENIZERS
from nmt.config.schema import Config
from nmt.data.corpus import SOFT_TARGETS, Corpus, Sequences
from nmt.data.manifest import load_manifest, most_copies
from nmt.data.splitting import Mask
from nmt.errors import DataError
from nmt.text.vocabulary import SPECIALS, UNK

NO_RARE_WORDS = (
    "no word occurs once in the training data, so <unk> is not trained: a new name will be "
    "translated by another word; add data, or raise vocabulary.min_frequency"
)


def load_training_corpus(config: Config) -> Corpus:
    """The training data of the prepared folder, with soft targets if the training uses them.

    Raises:
        DataError: a file is missing or damaged, or there are no soft targets.
    """
    folder = config.prepared_folder
    corpus = Corpus.load(folder, "train")
    corpus.copies = most_copies(load_manifest(folder))
    if config.training.distillation:
        corpus.soft_targets = load_soft_targets(folder, corpus)
    elif TOKENIZERS[config.tokenizer.kind].trait("whole"):
        # Parts of words need no <unk>, and soft targets name the words themselves.
        corpus.rare_words = find_rare_words(corpus)
    return corpus


def load_soft_targets(folder: Path, corpus: Corpus) -> Sequences:
    """The soft targets of the training data. Raises: DataError: they are missing or damaged."""
    if not any(folder.glob("train*.soft-targets.npy")):
        raise DataError(
            f"training.distillation: {folder} has no soft targets; write a folder that has "
            "them with `nmt augment --teacher`, or set it to 0"
        )
    sentences = Sequences.load(folder / SOFT_TARGETS)
    n_tokens = corpus.tgt.n_tokens + len(corpus)
    is_divisible = sentences.n_tokens > 0 and sentences.n_tokens % (2 * n_tokens) == 0
    if len(sentences) != len(corpus) or not is_divisible:
        raise DataError(
            f"{folder / SOFT_TARGETS}.npy: damaged, it does not fit the training data; run `nmt "
            "augment --teacher ... --overwrite`"
        )
    return sentences


def find_rare_words(corpus: Corpus) -> tuple[Mask, Mask] | None:
    """For `Corpus.rare_words`: the words that occur once, and `<unk>` itself if it is in the data.
    None if both sides have `<unk>`.
    """
    src = _rare(corpus.src)
    tgt = _rare(corpus.tgt)
    return None if src[UNK] and tgt[UNK] else (src, tgt)


def notes_on(corpus: Corpus) -> list[str]:
    """For the user: whether `<unk>` cannot be trained."""
    if corpus.rare_words is None or all(words.any() for words in corpus.rare_words):
        return []
    return [NO_RARE_WORDS]


def _rare(sentences: Sequences) -> Mask:
    counts = np.zeros(len(SPECIALS), np.int64)
    for ids, _ in sentences.blocks():
        block = np.bincount(ids, minlength=len(counts))
        block[: len(counts)] += counts
        counts = block
    is_rare: Mask = counts == 1
    is_rare[UNK] = counts[UNK] > 0
    return is_rare

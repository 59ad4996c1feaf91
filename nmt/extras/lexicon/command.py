"""`nmt lexicon`: learns a lexicon from the attention of a trained model, or from aligned words, and
saves it in the run folder.
"""

import time
from itertools import pairwise
from typing import Annotated

import numpy as np
import torch
import typer
from numpy.typing import NDArray

from nmt.bars import is_watched, progress_bar
from nmt.commands.options import RunArgument
from nmt.config.schema import BatchConfig
from nmt.data.batches import plan_batches, read_batches
from nmt.data.corpus import Corpus
from nmt.device import set_up_device
from nmt.errors import ConfigError, DataError
from nmt.extras.lexicon.lexicon import LEXICON_FILE, Entry, Lexicon, save_lexicon
from nmt.files import explain_write_errors, is_as_written
from nmt.model.seq2seq import Seq2Seq
from nmt.run.folder import (
    check_same_data,
    find_checkpoint,
    find_run,
    load_run_config,
    load_vocabularies,
)
from nmt.run.load import load_model
from nmt.text.vocabulary import EOS, Vocabulary
from nmt.training.word_alignment import WordAligner

BATCH_CONFIG = BatchConfig(unit="tokens", size=4096)
MAX_TRANSLATIONS = 50  # per source token
MIN_PROBABILITY = 0.001  # of a translation
MAX_PENDING = 1 << 22  # links kept before they are counted: 32 MB


def command(
    folder: RunArgument = None,
    aligner: Annotated[
        bool,
        typer.Option(
            "--aligner", help="Align the words statistically, not by the run's attention."
        ),
    ] = False,
    pairs: Annotated[
        int | None,
        typer.Option(
            "--pairs", min=1, help="Use this many random training pairs. Default: all.", metavar="N"
        ),
    ] = None,
) -> None:
    """Write the lexicon of a run, from links in training pairs.

    Raises:
        CheckpointError: there is no run, or it cannot be read.
        ConfigError: the model has no attention.
        DataError: the prepared data is missing or differs from the training data; the run has a
            lexicon that a user wrote or edited; or it cannot be written.
    """
    folder, start_time = find_run(folder), time.monotonic()
    path = folder / LEXICON_FILE
    if path.exists() and not is_as_written(path):
        raise DataError(
            f"{path}: is not as nmt wrote it, so it may have lines of yours; rename or delete it, "
            "then repeat"
        )
    config = load_run_config(folder)
    if config.model.attention.score == "none" and not aligner:
        raise ConfigError(
            f"{folder}: the model has no attention (model.attention.score: none) to learn a "
            "lexicon from; add --aligner"
        )
    check_same_data(folder, config.prepared_folder)
    corpus, vocabularies = Corpus.load(config.prepared_folder, "train"), load_vocabularies(folder)
    sample = np.random.default_rng(config.seed).permutation(len(corpus))[:pairs]
    src_size, tgt_size = map(len, vocabularies)
    links = LinkCounts(tgt_size)
    if aligner:
        word_aligner = WordAligner(corpus, src_size, tgt_size, sample)
        word_aligner.fit()
        for src_ids, tgt_ids in word_aligner.links():
            links.add(src_ids, tgt_ids)
    else:
        model = load_model(folder, find_checkpoint(folder)).to(set_up_device("auto"))
        count_links(model.eval(), corpus, sample, links, config.seed)
    lexicon = build_lexicon(links, *vocabularies)
    with explain_write_errors(path):
        save_lexicon(path, lexicon)
    n_entries = sum(map(len, lexicon.values()))
    print(
        f"{path}: {n_entries:,} translations of {len(lexicon):,} source tokens, "
        f"from {len(sample):,} pairs in {time.monotonic() - start_time:.0f} s"
    )


class LinkCounts:
    """The number of links between each source id and each target id."""

    def __init__(self, tgt_vocabulary_size: int) -> None:
        self._size = tgt_vocabulary_size
        self._pairs, self._counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._pending: list[NDArray[np.int64]] = []

    def add(self, src: NDArray[np.int64], tgt: NDArray[np.int64]) -> None:
        """Add links from src [N] to tgt [N]."""
        self._pending.append(src * self._size + tgt)
        if sum(map(len, self._pending)) > MAX_PENDING:
            self._count()

    def triples(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Source ids, target ids and counts, sorted by source id, then by count, largest first."""
        self._count()
        src, tgt = np.divmod(self._pairs, self._size)
        order = np.lexsort((tgt, -self._counts, src))
        return src[order], tgt[order], self._counts[order]

    def _count(self) -> None:
        pairs = np.concatenate([self._pairs, *self._pending])
        weights = np.concatenate([self._counts, np.ones(len(pairs) - len(self._counts), np.int64)])
        self._pairs, rows = np.unique(pairs, return_inverse=True)
        self._counts = np.bincount(rows, weights).astype(np.int64)
        self._pending = []


@torch.inference_mode()
def count_links(
    model: Seq2Seq, corpus: Corpus, sample: NDArray[np.int64], links: LinkCounts, seed: int
) -> None:
    """Count links from each target token to the source token that it attends to most.

    A target token whose largest weight is on <eos> has no link. The model must be in evaluation
    mode.

    Args:
        sample: indices of training pairs. seed: of the order of the batches.
    """
    plan = plan_batches(
        corpus.src.lengths[sample], corpus.tgt.lengths[sample], BATCH_CONFIG, key=(seed, 0)
    )
    batches = read_batches(corpus, [sample[indices] for indices in plan])
    with progress_bar(
        total=len(sample), unit="pair", desc="lexicon", disable=not is_watched(), leave=False
    ) as bar:
        for indices, batch in zip(plan, batches, strict=True):
            moved = batch.to(model.device)
            attention = model(moved.src, moved.src_lengths, moved.tgt_in).attention
            src, tgt = moved.src.gather(1, attention.argmax(-1)), moved.tgt_out  # [B, T]
            linked = moved.tgt_mask & (tgt != EOS) & (src != EOS)
            links.add(src[linked].cpu().numpy(), tgt[linked].cpu().numpy())
            bar.update(len(indices))


def build_lexicon(
    links: LinkCounts, src_vocabulary: Vocabulary, tgt_vocabulary: Vocabulary
) -> Lexicon:
    """Relative frequencies of the links, limited to `MAX_TRANSLATIONS` and `MIN_PROBABILITY`."""
    src, tgt, counts = links.triples()
    bounds = [*np.flatnonzero(np.diff(src, prepend=-1)), len(src)]
    entries: dict[str, list[Entry]] = {}
    for start, end in pairwise(bounds):
        total = counts[start:end].sum()
        kept = slice(start, min(end, start + MAX_TRANSLATIONS))
        tokens = tgt_vocabulary.tokens(tgt[kept].tolist())
        rows = zip(tokens, (counts[kept] / total).tolist(), counts[kept].tolist(), strict=True)
        (source,) = src_vocabulary.tokens([int(src[start])])
        entries[source] = [Entry(*row) for row in rows if row[1] >= MIN_PROBABILITY]
    return entries

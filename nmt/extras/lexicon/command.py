"""`nmt lexicon`: learns a lexicon from the attention of a trained model, or from aligned words, and
saves it in the run folder.
"""

import time
from collections.abc import Iterator
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from nmt.bars import is_watched, progress_bar
from nmt.commands.options import DataOption, DeviceOption, RunArgument
from nmt.config.schema import BatchConfig
from nmt.data.batches import Batch, plan_batches, read_batches
from nmt.data.corpus import Corpus
from nmt.device import set_up_device
from nmt.errors import ConfigError
from nmt.extras.lexicon.lexicon import LEXICON_FILE, LinkCounts, build_lexicon, count_links
from nmt.files import explain_write_errors
from nmt.run.folder import (
    check_same_data,
    find_checkpoint,
    find_run,
    load_run_config,
    load_vocabularies,
)
from nmt.run.load import load_model
from nmt.training.word_alignment import WordAligner

BATCH_CONFIG = BatchConfig(unit="tokens", size=4096)


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
    data: DataOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Write the lexicon of a run, from links in training pairs.

    Raises:
        CheckpointError: there is no run, or it cannot be read.
        ConfigError: the model has no attention.
        DataError: the prepared data is missing or differs from the training data, or the lexicon
            cannot be written.
    """
    folder, start_time = find_run(folder), time.monotonic()
    config = load_run_config(folder)
    if config.model.attention.score == "none" and not aligner:
        raise ConfigError(
            f"{folder}: the model has no attention (model.attention.score: none) to learn a "
            "lexicon from; add --aligner"
        )
    prepared = data or config.prepared_folder
    check_same_data(folder, prepared)
    corpus, vocabularies = Corpus.load(prepared, "train"), load_vocabularies(folder)
    sample = np.random.default_rng(config.seed).permutation(len(corpus))[:pairs]
    src_size, tgt_size = map(len, vocabularies)
    if aligner:
        word_aligner, links = WordAligner(corpus, src_size, tgt_size, sample), LinkCounts(tgt_size)
        word_aligner.fit()
        for src_ids, tgt_ids in word_aligner.links():
            links.add(src_ids, tgt_ids)
    else:
        model = load_model(folder, find_checkpoint(folder)).to(set_up_device(device))
        links = count_links(model.eval(), _batches(corpus, sample, config.seed), tgt_size)
    lexicon, path = build_lexicon(links, *vocabularies), folder / LEXICON_FILE
    with explain_write_errors(path):
        lexicon.save(path)
    n_entries = sum(map(len, lexicon.entries.values()))
    print(
        f"{path}: {n_entries:,} translations of {len(lexicon.entries):,} source tokens, "
        f"from {len(sample):,} pairs in {time.monotonic() - start_time:.0f} s"
    )


def _batches(corpus: Corpus, sample: NDArray[np.int64], seed: int) -> Iterator[Batch]:
    """Batches of a sample of training pairs, with a progress bar at a terminal."""
    plan = plan_batches(
        corpus.src.lengths[sample], corpus.tgt.lengths[sample], BATCH_CONFIG, key=(seed, 0)
    )
    with progress_bar(
        total=len(sample), unit="pair", desc="lexicon", disable=not is_watched(), leave=False
    ) as bar:
        for indices, batch in zip(
            plan, read_batches(corpus, [sample[indices] for indices in plan]), strict=True
        ):
            yield batch
            bar.update(len(indices))

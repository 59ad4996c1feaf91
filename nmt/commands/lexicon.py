"""`nmt lexicon`: learns a lexicon from the attention of a trained model and saves it in the run folder."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

from nmt.config.names import DeviceName
from nmt.config.schema import BatchConfig
from nmt.data.batching import Batch, plan_batches, read_batches
from nmt.data.corpus import Corpus
from nmt.decoding.lexicon import build_lexicon, count_links
from nmt.errors import ConfigError, DataError
from nmt.model.device import set_up_device
from nmt.run.checkpoint import load_weights
from nmt.run.folder import LEXICON_FILE, build_model, check_same_data, find_checkpoint, find_run, load_run_config, load_vocabularies

BATCH_CONFIG = BatchConfig(unit="tokens", size=4096)


def run(folder: Path | None = None, *, pairs: int | None = None, data: Path | None = None, device: DeviceName = "auto") -> str:
    """Link the tokens of training pairs by the attention of a run, and write the lexicon of the run. Returns a line for the user.

    Args:
        folder: of the run; default: the run trained last.
        pairs: number of training pairs to read, sampled at random; default: all.
        data: the prepared data folder, if it has moved since training.

    Raises:
        CheckpointError: there is no run, or it cannot be read.
        ConfigError: the model has no attention.
        DataError: the prepared data is missing or differs from the training data, or the lexicon cannot be written.
    """
    folder, start_time = find_run(folder), time.monotonic()
    config = load_run_config(folder)
    if config.model.attention.score == "none":
        raise ConfigError(
            f"{folder}: the model has no attention (model.attention.score: none), but a lexicon is learned from attention"
        )
    prepared = data or config.prepared_folder
    check_same_data(folder, prepared)
    corpus, model = Corpus.load(prepared, "train"), build_model(folder, config)
    load_weights(find_checkpoint(folder), model)
    vocabularies = load_vocabularies(folder)
    links = count_links(model.to(set_up_device(device)).eval(), _batches(corpus, pairs, config.seed), len(vocabularies[1]))
    lexicon, path = build_lexicon(links, *vocabularies), folder / LEXICON_FILE
    try:
        lexicon.save(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror or error})") from None
    n_entries, n_pairs = sum(map(len, lexicon.entries.values())), min(pairs or len(corpus), len(corpus))
    return (
        f"{path}: {n_entries:,} translations of {len(lexicon.entries):,} source tokens, "
        f"from {n_pairs:,} pairs in {time.monotonic() - start_time:.0f} s"
    )


def _batches(corpus: Corpus, pairs: int | None, seed: int) -> Iterator[Batch]:
    """Batches of a random sample of `pairs` training pairs, or of all, with a progress bar at a terminal."""
    sample = np.random.default_rng(seed).permutation(len(corpus))[:pairs]
    plan = plan_batches(corpus.src.lengths[sample], corpus.tgt.lengths[sample], BATCH_CONFIG, seed=seed, epoch=0)
    with tqdm(total=len(sample), unit="pair", desc="lexicon", disable=None, leave=False) as bar:
        for indices, batch in zip(plan, read_batches(corpus, [sample[indices] for indices in plan]), strict=True):
            yield batch
            bar.update(len(indices))

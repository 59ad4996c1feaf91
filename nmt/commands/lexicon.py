"""`nmt lexicon`: what a trained model's attention says that words are translated by, kept in the run."""

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
from nmt.model.device import pick_device
from nmt.run.checkpoint import load_weights
from nmt.run.folder import LEXICON_FILE, build_model, check_same_data, find_checkpoint, find_run, load_run_config, load_vocabularies

BATCH = BatchConfig(unit="tokens", size=4096)


def run(folder: Path | None = None, *, pairs: int | None = None, data: Path | None = None, device: DeviceName = "auto") -> str:
    """Link the words of training pairs with a run (default: that trained last), and write its lexicon; what came of it, in a line.

    Args:
        pairs: how many are read, drawn at random; all if not given.
        data: the prepared data folder, if it has moved since training.

    Raises:
        CheckpointError: there is no run, or it cannot be read.
        ConfigError: its model looks at nothing.
        DataError: the prepared data is not there, or not what the run was trained on, or the lexicon cannot be written.
    """
    folder, start = find_run(folder), time.monotonic()
    config = load_run_config(folder)
    if config.model.attention.score == "none":
        raise ConfigError(f"{folder}: its model looks at nothing (model.attention.score: none); there is no lexicon to learn")
    prepared = data or config.prepared_folder
    check_same_data(folder, prepared)
    corpus, model = Corpus.load(prepared, "train"), build_model(folder, config)
    load_weights(find_checkpoint(folder), model)
    vocabularies = load_vocabularies(folder)
    links = count_links(model.to(pick_device(device)).eval(), _batches(corpus, pairs, config.seed), len(vocabularies[1]))
    lexicon, path = build_lexicon(links, *vocabularies), folder / LEXICON_FILE
    try:
        lexicon.save(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror or error})") from None
    n_entries, n_pairs = sum(map(len, lexicon.entries.values())), min(pairs or len(corpus), len(corpus))
    return (
        f"{path}: {n_entries:,} translations of {len(lexicon.entries):,} source tokens, "
        f"from {n_pairs:,} pairs in {time.monotonic() - start:.0f} s"
    )


def _batches(corpus: Corpus, pairs: int | None, seed: int) -> Iterator[Batch]:
    """All training pairs or so many of them, sorted by length, with a bar where someone is watching."""
    drawn = np.random.default_rng(seed).permutation(len(corpus))[:pairs]
    plan = plan_batches(corpus.src.lengths[drawn], corpus.tgt.lengths[drawn], BATCH, seed=seed, epoch=0)
    with tqdm(total=len(drawn), unit="pair", desc="lexicon", disable=None, leave=False) as bar:
        for chosen, batch in zip(plan, read_batches(corpus, [drawn[chosen] for chosen in plan]), strict=True):
            yield batch
            bar.update(len(chosen))

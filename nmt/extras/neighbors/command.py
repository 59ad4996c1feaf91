"""`nmt neighbors`: stores the training pairs in the run, to look for similar ones."""

from nmt.commands.options import DataOption, RunArgument
from nmt.data.corpus import Corpus, restore_pairs
from nmt.data.manifest import load_manifest
from nmt.extras.neighbors.model import NEIGHBORS_FILE, save_pairs
from nmt.files import explain_write_errors
from nmt.run.folder import (
    check_same_data,
    find_run,
    load_run_config,
    load_tokenizers,
    load_vocabularies,
)
from nmt.text.vocabulary import SPECIALS, UNK


def command(folder: RunArgument = None, data: DataOption = None) -> None:
    """Write the training pairs of a run, without unknown words.

    Pairs that `nmt augment` added to original ones are left out: their translations are those of a
    model.

    Raises:
        CheckpointError: there is no run.
        DataError: the prepared data is missing or differs from the training data, or the pairs
            cannot be written.
    """
    folder = find_run(folder)
    config = load_run_config(folder)
    prepared = data or config.prepared_folder
    check_same_data(folder, prepared)
    train = Corpus.load(prepared, "train")
    parts = load_manifest(prepared).get("augmentation", {}).get("parts", [])
    originals = sum(part["pairs"] for part in parts[:1] if part["repeat"])  # they come first
    rows = [(0, originals or len(train))]
    chosen = Corpus(train.src.selection(rows), train.tgt.selection(rows))
    pairs = restore_pairs(chosen, load_tokenizers(folder, config), load_vocabularies(folder))
    known = dict.fromkeys(pair for pair in pairs if SPECIALS[UNK] not in "\t".join(pair))
    path = folder / NEIGHBORS_FILE
    with explain_write_errors(path):
        save_pairs(path, known)
    print(f"{path}: {len(known):,} pairs; translate with --set decoding.neighbors.pairs=16")

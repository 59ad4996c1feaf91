"""`nmt neighbors`: stores the training pairs in the run, to look for similar ones."""

from nmt.commands.options import DataOption, RunArgument
from nmt.data.corpus import Corpus, restore_pairs
from nmt.data.manifest import load_manifest, original_ranges
from nmt.extras.neighbors.model import NEIGHBORS_FILE, save_pairs
from nmt.files import explain_write_errors, refuse_edited
from nmt.run.folder import (
    check_same_data,
    find_run,
    load_run_config,
    load_tokenizers,
    load_vocabularies,
)
from nmt.text.vocabulary import SPECIALS, UNK


def command(folder: RunArgument = None, data: DataOption = None) -> None:
    """Write the original training pairs of a run, without unknown words.

    Pairs that `nmt augment` added are left out: their translations are those of a model.

    Raises:
        CheckpointError: there is no run.
        DataError: the prepared data is missing, differs from the training data, or has no original
            pairs; the run has pairs that a user wrote; or the pairs cannot be written.
    """
    folder = find_run(folder)
    config = load_run_config(folder)
    prepared = data or config.prepared_folder
    check_same_data(folder, prepared)
    path = folder / NEIGHBORS_FILE
    refuse_edited(path)
    rows = original_ranges(prepared, load_manifest(prepared))
    pairs = restore_pairs(
        Corpus.load(prepared, "train").selection(rows),
        load_tokenizers(folder, config),
        load_vocabularies(folder),
    )
    known = dict.fromkeys(pair for pair in pairs if SPECIALS[UNK] not in "\t".join(pair))
    with explain_write_errors(path):
        save_pairs(path, known)
    print(f"{path}: {len(known):,} pairs; translate with --set decoding.neighbors.pairs=16")

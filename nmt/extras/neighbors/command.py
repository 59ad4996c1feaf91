"""`nmt neighbors`: stores the training pairs and their keys in the run."""

from nmt.commands.options import RunArgument
from nmt.data.corpus import Corpus, encode_pairs, restore_pairs
from nmt.data.manifest import load_manifest, original_ranges
from nmt.extras.neighbors.datastore import KEYS_FILE, digest_of, save_keys
from nmt.extras.neighbors.model import NEIGHBORS_FILE, load_pairs, save_pairs
from nmt.files import explain_write_errors, is_as_written
from nmt.run.folder import (
    check_same_data,
    find_checkpoint,
    find_run,
    load_run_config,
    load_tokenizers,
    load_vocabularies,
)
from nmt.run.graphs import weights_digest
from nmt.run.load import load_search_model
from nmt.text.vocabulary import SPECIALS, UNK


def command(folder: RunArgument = None) -> None:
    """Write the original training pairs of a run, without unknown words, and their keys.

    Pairs that `nmt augment` added are left out: their translations are those of a model. Where the
    run has pairs that a user wrote or edited, these stay, and only their keys are written.

    Raises:
        CheckpointError: there is no run, or no checkpoint.
        DataError: the prepared data is missing, differs from the training data, or has no original
            pairs; the pairs of a user are damaged; or a file cannot be written.
    """
    folder = find_run(folder)
    config, path = load_run_config(folder), folder / NEIGHBORS_FILE
    tools = load_tokenizers(folder, config), load_vocabularies(folder)
    if not path.exists() or is_as_written(path):  # what a user wrote stays
        prepared = config.prepared_folder
        check_same_data(folder, prepared)
        rows = original_ranges(prepared, load_manifest(prepared))
        restored = restore_pairs(Corpus.load(prepared, "train").selection(rows), *tools)
        known = dict.fromkeys(pair for pair in restored if SPECIALS[UNK] not in "\t".join(pair))
        with explain_write_errors(path):
            save_pairs(path, known)
    pairs = load_pairs(path)
    checkpoint = find_checkpoint(folder)
    exact = config.decoding.model_copy(update={"precision": "float32"})
    model = load_search_model(folder, checkpoint, "auto", exact)
    digest = digest_of(path, weights_digest(checkpoint))
    with explain_write_errors(keys := folder / KEYS_FILE):
        save_keys(keys, model, encode_pairs(pairs, *tools), digest)
    print(f"{path}: {len(pairs):,} pairs; translate with --set decoding.neighbors.pairs=64")

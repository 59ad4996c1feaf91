"""`nmt runs check`: reads every file of a run, a bundle or prepared data; says what is damaged."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.config.schema import Config
from nmt.data.corpus import SPLITS, Corpus, read_sentences
from nmt.data.manifest import (
    MANIFEST,
    check_files,
    content_hash,
    load_manifest,
    prepared_config,
)
from nmt.errors import CheckpointError, DataError, NmtError, NmtWarning, pass_on_lack_of_memory
from nmt.files import CHECKSUMS_FILE, read_checksums, sha256_of, warn_if_changed
from nmt.plugins import import_object
from nmt.run.checkpoint import (
    MODEL_FILE,
    OPTIMIZER_FILE,
    Checkpoints,
    is_average,
    read_arrays,
    read_progress,
)
from nmt.run.folder import (
    CONFIG_FILE,
    PROVENANCE_FILE,
    check_same_data,
    find_run,
    further_files,
    holds_run,
    holds_weights_only,
    load_run_config,
    load_tokenizers,
    load_vocabularies,
    open_checkpoints,
)
from nmt.run.graphs import GRAPHS_FOLDERS, read_graphs
from nmt.run.load import unpacked
from nmt.text.tokenizers import SIDES

Part = tuple[str, Callable[[], object]]  # a name, and a function that reads it


def command(
    path: Annotated[
        Path | None,
        typer.Argument(
            help="Run, bundle or prepared folder. Default: the newest run in runs/.",
            metavar="RUN|DATA",
        ),
    ] = None,
) -> None:
    """Check a run (default: the newest one), a bundle or a prepared folder. Nothing is changed.

    Raises:
        CheckpointError: there is no run, no bundle and no prepared data.
        NmtError: a part is damaged.
    """
    damaged = []
    with unpacked(path) as folder:
        for part, state, text in findings(folder):
            print(f"{state:<9}{text or part}".replace(str(folder), str(path)))
            if state == "damaged":
                damaged.append(part)
    if damaged:
        raise NmtError(f"damaged: {', '.join(damaged)}")


def findings(folder: Path | None) -> Iterator[tuple[str, str, str]]:
    """Read each part of a folder. Yields its name, its state, and its first error or warning."""
    if folder is not None and not holds_run(folder) and (folder / MANIFEST).exists():
        parts = _parts_of_data(folder)
    else:
        parts = _parts_of_run(find_run(folder))
    # A part that needs a damaged one cannot be checked.
    with suppress(NmtError), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NmtWarning)
        for part, read in parts:
            caught.clear()
            try:
                read()
            except (NmtError, OSError) as error:
                pass_on_lack_of_memory(error)
                yield part, "damaged", str(error)
                continue
            texts = [str(each.message) for each in caught if each.category is NmtWarning]
            yield part, "warning" if texts else "ok", texts[0] if texts else ""


def _warn(text: str) -> None:
    warnings.warn(text, NmtWarning, stacklevel=3)


def _parts_of_data(folder: Path) -> Iterator[Part]:
    yield MANIFEST, partial(load_manifest, folder)
    manifest = load_manifest(folder)
    yield "sizes", partial(check_files, folder, manifest)
    yield "contents", partial(_check_content, folder, manifest)
    yield "vocabularies", partial(load_vocabularies, folder)
    yield "tokenizers", partial(load_tokenizers, folder, prepared_config(folder, manifest))
    for split in SPLITS:
        yield f"{split} data", partial(Corpus.load, folder, split)
    for split, side in product(("dev", "test"), SIDES):
        yield f"{split}.{side}.txt", partial(read_sentences, folder, split, side)
    for file in manifest["inputs"]:
        yield f"{file['role']} {file['path']}", partial(_check_input, file)


def _check_content(folder: Path, manifest: Mapping[str, Any]) -> None:
    digests = {name: sha256_of(folder / name) for name in sorted(manifest["files"])}
    if content_hash(digests) != manifest["content"]:
        raise DataError(
            f"{folder}: damaged, the content of a file has changed; --overwrite prepares it again"
        )


def _check_input(file: Mapping[str, Any]) -> None:
    path = Path(file["path"])
    if not path.is_file():
        _warn(f"{path}: missing; it is needed only to prepare this data again")
    elif sha256_of(path) != file["sha256"]:
        _warn(f"{path}: has changed since; to prepare this data again, restore it")


def _parts_of_run(folder: Path) -> Iterator[Part]:
    yield CONFIG_FILE, partial(load_run_config, folder)
    config = load_run_config(folder)
    yield CHECKSUMS_FILE, partial(read_checksums, folder)
    yield MANIFEST, partial(load_manifest, folder)
    yield "tokenizers", partial(load_tokenizers, folder, config)
    if (folder / PROVENANCE_FILE).exists():
        yield PROVENANCE_FILE, partial(warn_if_changed, folder / PROVENANCE_FILE)
    for name, place in further_files().items():
        if (folder / name).exists():
            yield name, partial(import_object(place), folder / name)
    yield f"training data {config.prepared_folder}", partial(_check_training_data, folder, config)
    yield "vocabularies", partial(load_vocabularies, folder)
    checkpoints, read_weights = open_checkpoints(folder, config), _weights_reader(folder, config)
    yield "best.json", partial(checkpoints.find, "best")
    yield "last.json", partial(checkpoints.find, "last")
    for path in sorted(checkpoints.folder.glob("[!.]*-*")):
        folders = sorted(path.glob(GRAPHS_FOLDERS))
        # A run that is exported has graphs alone.
        if (path / MODEL_FILE).exists() or not (folders and holds_weights_only(folder)):
            read = partial(_read_checkpoint, path, read_weights, checkpoints)
            yield f"checkpoint {path.name}", read
        for graphs in folders:
            yield f"{graphs.name} of {path.name}", partial(read_graphs, graphs)


def _check_training_data(folder: Path, config: Config) -> None:
    try:
        check_same_data(folder, config.prepared_folder)
    except DataError as error:
        _warn(f"{error}; translation does not need it")


def _weights_reader(folder: Path, config: Config) -> Callable[..., object]:
    """What reads the weights of a checkpoint. Without torch, it does not see whether they fit the
    configuration.
    """
    if find_spec("torch") is None:
        return lambda checkpoint, **_: read_arrays(checkpoint / MODEL_FILE)
    from nmt.run.weights import build_model, load_weights  # which import torch

    return partial(load_weights, model=build_model(folder, config))


def _read_checkpoint(
    path: Path, read_weights: Callable[..., object], checkpoints: Checkpoints
) -> None:
    try:
        read_weights(path)
        if not is_average(path.name) and not holds_weights_only(path.parent.parent):
            read_arrays(path / OPTIMIZER_FILE)
            read_progress(path)
    except CheckpointError:
        kept = [*checkpoints.kept("best"), *checkpoints.kept("last")]
        if path.name in [each.checkpoint for each in kept]:
            raise
        _warn(f"{path}: half deleted and not needed; the next training deletes the rest")

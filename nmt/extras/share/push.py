"""`nmt push`: publishes what translating needs of a run on the Hugging Face hub, with a model
card.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from nmt.config.load import config_from_dict
from nmt.config.yaml_text import dump
from nmt.data.manifest import MANIFEST
from nmt.errors import ConfigError, NmtError
from nmt.extras.runs import inspect
from nmt.extras.share import hub
from nmt.extras.share.bundle import INFO_FILE, RUN_FILES, describe, run_files
from nmt.extras.share.card import model_card
from nmt.files import CHECKSUMS_FILE, read_json, sha256_of, write_json, write_text
from nmt.run.checkpoint import MODEL_FILE, step_of
from nmt.run.folder import CARD_FILE, CONFIG_FILE, EVALUATION_FOLDER, HISTORY_FILE, load_run_config
from nmt.run.load import build_translator, opened

FOREIGN_FILES = (".gitattributes", CARD_FILE)  # that a repository may hold before the first push


def command(
    folder: Annotated[
        Path, typer.Argument(help="Run folder, or a file of `nmt bundle`.", metavar="RUN")
    ],
    repository: Annotated[
        str, typer.Argument(help="Repository on the hub, such as me/en-de.", metavar="USER/NAME")
    ],
    license_id: Annotated[
        str | None,
        typer.Option(
            "--license", help="License of the model, for its card, such as cc-by-2.0.", metavar="ID"
        ),
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Only you can see the repository.")
    ] = False,
) -> None:
    """The command line."""
    print(run(folder, repository, license_id=license_id, private=private))


def run(
    path: Path, repository: str, *, license_id: str | None = None, private: bool = False
) -> str:
    """Publish the best checkpoint of a run, or the given checkpoint. Returns lines for the user.

    Args:
        path: a run, one of its checkpoints, or a bundle.
        repository: USER/NAME; created if it does not exist.
        license_id: of the model, for its card.
        private: create a repository that only its owner sees.

    Raises:
        CheckpointError, ConfigError, DataError: a part of the run is missing or damaged.
        ConfigError: there is a license, but the run has a card of its own; or the repository is
            public, against `private`.
        NmtError: the hub cannot be reached or refuses, or the repository holds something else.
    """
    hub.check_name(repository)
    with opened(path) as (run_folder, checkpoint), TemporaryDirectory(prefix="nmt-") as temporary:
        if license_id is not None and (run_folder / CARD_FILE).exists():
            raise ConfigError(
                f"{path}: its {CARD_FILE} is the card; write the license there, or delete the "
                "file to get a new card"
            )
        build_translator(
            [(run_folder, checkpoint)], device="cpu"
        )  # a model that cannot translate is not published
        files = _stage(run_folder, checkpoint, Path(temporary), repository, license_id)
        snapshot = hub.create(repository, private=private)
        if private and not snapshot.private:
            raise ConfigError(
                f"{repository}: exists and is public; leave out --private, or choose another "
                "repository"
            )
        others = [name for name in snapshot.sizes if name not in FOREIGN_FILES]
        if others and INFO_FILE not in others:
            raise NmtError(
                f"{repository}: holds something else than a model of nmt ({others[0]}); choose "
                "another repository"
            )
        old = (name for name in snapshot.sizes if name in RUN_FILES and name not in files)
        address = hub.commit(snapshot, files, old, f"nmt push: {checkpoint.name}")
        size = sum(file.stat().st_size for file in files.values()) / 1e6
    return (
        f"{address}: {path}, {checkpoint.name}, {len(files)} files, {size:.1f} MB\nnext: nmt "
        f"pull {repository}"
    )


def _stage(
    run: Path, checkpoint: Path, folder: Path, repository: str, license_id: str | None
) -> dict[str, Path]:
    """What the repository gets, by name: copies in `folder`, and the weights where they are.

    Absolute paths in configuration and manifest tell about the owner's computer: only the last part
    of each stays.
    """
    for file in run_files(run):
        copy = folder / file.relative_to(run)
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(file, copy)
    (folder / CHECKSUMS_FILE).unlink(missing_ok=True)  # `bundle.json` has the hashes of all files
    config = load_run_config(run)
    write_text(folder / CONFIG_FILE, dump(config_from_dict(_without_folders(config.to_dict()))))
    write_json(folder / MANIFEST, _without_folders(read_json(run / MANIFEST)), indent=2)
    if (history := folder / EVALUATION_FOLDER / HISTORY_FILE).exists():
        events = [json.loads(line) for line in history.read_text(encoding="utf-8").splitlines()]
        write_text(
            history,
            "".join(
                f"{json.dumps(_without_folders(event), ensure_ascii=False)}\n" for event in events
            ),
        )
    names = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    files = {name: folder / name for name in names} | {MODEL_FILE: checkpoint / MODEL_FILE}
    digests = {
        name: sha256_of(file) for name, file in files.items() if name != CARD_FILE
    }  # which users edit on the hub
    write_json(folder / INFO_FILE, {**describe(checkpoint.name), "sha256": digests}, indent=2)
    if CARD_FILE not in files:
        facts = inspect.run(run)
        card = model_card(
            facts, step_of(checkpoint.name), repository=repository, license_id=license_id
        )
        write_text(folder / CARD_FILE, card)
    return {**files, INFO_FILE: folder / INFO_FILE, CARD_FILE: folder / CARD_FILE}


def _without_folders(value: Any) -> Any:
    """The value with the last part of each absolute path in place of the path; with more parts
    where names are equal.
    """
    paths = {
        text: PureWindowsPath(text).parts[1:] for text in _texts(value) if _is_absolute(text)
    }  # they split at / and \

    def shorten(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shorten(item) for key, item in value.items()}
        if isinstance(value, list):
            return [shorten(item) for item in value]
        if not (isinstance(value, str) and paths.get(value)):
            return value
        parts = paths[value]
        lengths = range(1, len(parts))
        clashes = (
            any(other[-n:] == parts[-n:] for text, other in paths.items() if text != value)
            for n in lengths
        )
        length = next(
            (n for n, clash in zip(lengths, clashes, strict=True) if not clash), len(parts)
        )
        return "/".join(parts[-length:])

    return shorten(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _is_absolute(text: str) -> bool:
    return text.startswith("/") or PureWindowsPath(text).is_absolute()

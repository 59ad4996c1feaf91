"""Runs on the Hugging Face hub.

`nmt share push` publishes what translating needs of a run, with a model card; `nmt share pull`
makes a run folder of such a repository. The library of the hub finds the address (HF_ENDPOINT) and
the access token by itself.
"""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath
from tempfile import TemporaryDirectory
from typing import Annotated, Any, cast

import typer
from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils import disable_progress_bars, validate_repo_id

from nmt import __version__
from nmt.config.load import config_from_dict
from nmt.config.yaml_text import dump
from nmt.data.manifest import MANIFEST
from nmt.errors import CheckpointError, ConfigError, DataError, NmtError, in_one_line
from nmt.extras.share.bundle import (
    BEST_FILE,
    GRAPH_FILES,
    INFO_FILE,
    LEXICON_FILE,
    NEIGHBORS_FILE,
    RUN_FILES,
    check_info,
    describe,
    pointer_to,
    run_files,
    uses_neighbors,
)
from nmt.files import (
    CHECKSUMS_FILE,
    explain_write_errors,
    read_json,
    record_checksums,
    replacing_folder,
    sha256_of,
    synchronize,
    write_json,
    write_text,
)
from nmt.plugins import import_object
from nmt.run.checkpoint import MODEL_FILE, step_of
from nmt.run.folder import (
    CARD_FILE,
    CONFIG_FILE,
    EVALUATION_FOLDER,
    HISTORY_FILE,
    RUNS_FOLDER,
    load_run_config,
)
from nmt.run.journal import read_events
from nmt.run.load import build_translator, opened

WEIGHTS = (MODEL_FILE, *GRAPH_FILES)
PUBLIC_FILES = tuple(name for name in (*RUN_FILES, *WEIGHTS) if name != CHECKSUMS_FILE)
JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
# of httpx or of httpx2: versions of the library differ
HTTP_ERROR = cast("type[Exception]", HfHubHTTPError.__mro__[1])


def push_command(
    path: Annotated[Path, typer.Argument(help="Run folder or bundle.", metavar="RUN")],
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
    """Publish the best checkpoint of a run, or the given checkpoint.

    Raises:
        CheckpointError, DataError: a part of the run is missing or damaged.
        ConfigError: as these; or there is a license, but the run has a card of its own; or the
            repository is public, against `private`.
        NmtError: the hub cannot be reached or refuses, or the repository holds something else.
    """
    with opened(path) as (run, checkpoint), TemporaryDirectory(prefix="nmt-") as temporary:
        _check_publishable(path, run, checkpoint, license_id)
        # A model that cannot translate is not published.
        build_translator([(run, checkpoint)], device="cpu")
        folder = Path(temporary)
        _stage(run, checkpoint, folder, repository, license_id)
        with _hub(repository) as api:
            api.create_repo(repository, private=private or None, exist_ok=True)
            info = api.model_info(repository)
            others = [file.rfilename for file in info.siblings or ()]
            if private and not info.private:
                raise ConfigError(
                    f"{repository}: exists and is public; leave out --private, or choose another "
                    "repository"
                )
            # Before the first push a repository may hold two files that the hub makes.
            foreign = {*others} - {".gitattributes", CARD_FILE}
            if INFO_FILE not in others and foreign:
                raise NmtError(
                    f"{repository}: holds something else than a model of nmt ({min(foreign)}); "
                    "choose another repository"
                )
            commit = api.upload_folder(
                repo_id=repository,
                folder_path=folder,
                commit_message=f"nmt share push: {checkpoint.name}",
                parent_commit=info.sha,
                delete_patterns=[*RUN_FILES, *GRAPH_FILES, LEXICON_FILE],
            )
    print(f"{commit.commit_url}: {path}, {checkpoint.name}")


def _check_publishable(path: Path, run: Path, checkpoint: Path, license_id: str | None) -> None:
    """Raises: ConfigError, CheckpointError: as in `push_command`."""
    if license_id is not None and (run / CARD_FILE).exists():
        raise ConfigError(
            f"{path}: its {CARD_FILE} is the card; write the license there, or delete the file to "
            "get a new card"
        )
    if not (checkpoint / MODEL_FILE).exists():
        raise CheckpointError(
            f"{path}: has no weights, only graphs; push the run that it was exported from"
        )
    if uses_neighbors(run):
        raise ConfigError(
            f"{path}: decoding.neighbors.pairs needs {NEIGHBORS_FILE}, which has sentences of the "
            f"data and is not published; set it to 0 in {run / CONFIG_FILE}"
        )


def pull_command(
    repository: Annotated[
        str,
        typer.Argument(
            help="Repository on the hub; also a branch, tag or commit of it.",
            metavar="USER/NAME[@REVISION]",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder to write. Default: runs/NAME.", metavar="DIR"),
    ] = None,
) -> None:
    """Download a model and check it. Nothing is left of a download that fails.

    Raises:
        CheckpointError: the repository holds no model of nmt, or a damaged one.
        DataError: `output` holds something, or cannot be written.
        NmtError: the hub cannot be reached or refuses.
    """
    name, _, revision = repository.partition("@")
    output = output or RUNS_FOLDER / name.rpartition("/")[2]
    with _hub(name) as api:
        info = api.model_info(name, revision=revision or None)
    if INFO_FILE not in [file.rfilename for file in info.siblings or ()]:
        raise CheckpointError(
            f"{name}: holds no model of nmt ({INFO_FILE} is missing); `nmt share push` publishes "
            "such models"
        )
    if output.is_file() or (output.is_dir() and any(output.iterdir())):
        raise DataError(f"{output}: exists; choose another folder with -o, or delete it")
    with explain_write_errors(output), replacing_folder(output) as folder:
        with _hub(name):
            snapshot_download(
                name,
                revision=info.sha,
                local_dir=folder,
                allow_patterns=[INFO_FILE, *PUBLIC_FILES],  # no name comes from the repository
            )
        shutil.rmtree(folder / ".cache", ignore_errors=True)  # notes of the library
        try:
            checkpoint = _make_run(folder, {"repository": name, "revision": info.sha})
            build_translator([(folder, folder / "checkpoints" / checkpoint)], device="cpu")
        except NmtError as error:
            raise type(error)(str(error).replace(str(folder), name)) from None
    print(f"{output}: {name} at {str(info.sha)[:12]}, {checkpoint}")


@contextmanager
def _hub(repository: str) -> Iterator[HfApi]:
    """The hub. Raises: NmtError in place of the errors of its library."""
    if not sys.stderr.isatty():
        disable_progress_bars()
    try:
        validate_repo_id(repository)
        yield HfApi(library_name="nmt", library_version=__version__)
    except (HTTP_ERROR, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno:
            raise  # of this computer, such as a full disk
        reason = " ".join((getattr(error, "server_message", None) or str(error)).split())
        raise NmtError(
            f"{repository}: {reason[:300]}; check the name and the network, or log in with "
            "`hf auth login`"
        ) from None
    except (TypeError, AttributeError, LookupError, RecursionError, AssertionError) as error:
        raise NmtError(
            f"{repository}: not what a hub answers ({in_one_line(error)}); check HF_ENDPOINT"
        ) from None


def _stage(
    run: Path, checkpoint: Path, folder: Path, repository: str, license_id: str | None
) -> None:
    """Fill `folder` with what the repository gets.

    Absolute paths in configuration, manifest and scores tell about the owner's computer: only the
    last part of each stays.
    """
    for file in run_files(run):
        copy = folder / file.relative_to(run)
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(file, copy)
    (folder / CHECKSUMS_FILE).unlink(missing_ok=True)  # `bundle.json` has the hashes of all files
    for name in WEIGHTS:
        if (checkpoint / name).exists():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).symlink_to((checkpoint / name).resolve())
    config = load_run_config(run)
    write_text(folder / CONFIG_FILE, dump(config_from_dict(_without_folders(config.to_dict()))))
    write_json(folder / MANIFEST, _without_folders(read_json(run / MANIFEST)), indent=2)
    if (history := folder / EVALUATION_FOLDER / HISTORY_FILE).exists():
        lines = (
            json.dumps(_without_folders(event), ensure_ascii=False)
            for event in read_events(history)
        )
        write_text(history, "".join(f"{line}\n" for line in lines))
    digests = {
        path.relative_to(folder).as_posix(): sha256_of(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != CARD_FILE  # which users edit on the hub
    }
    write_json(folder / INFO_FILE, {**describe(checkpoint.name), "sha256": digests}, indent=2)
    if not (folder / CARD_FILE).exists():
        facts = import_object("nmt.extras.runs.inspect:run")(run)
        find = import_object("nmt.extras.runs.inspect:evaluations_of")
        facts["evaluations"] = find(facts, checkpoint.name)
        card = import_object("nmt.extras.runs.card:model_card")(
            facts,
            step_of(checkpoint.name),
            repository=repository,
            license_id=license_id,
        )
        write_text(folder / CARD_FILE, card)


def _without_folders(value: Any) -> Any:
    """The value with the last parts of each absolute path: as many as make it different."""
    text = json.dumps(value)
    # A path of Windows splits at / and \.
    found = {each: PureWindowsPath(json.loads(each)) for each in JSON_STRING.findall(text)}
    paths = {
        string: path.parts[1:]
        for string, path in found.items()
        if path.root and len(path.parts) > 1
    }
    ends = {}
    for string, parts in paths.items():
        others = [other for each, other in paths.items() if each != string]
        length = 1
        while length < len(parts) and any(each[-length:] == parts[-length:] for each in others):
            length += 1
        ends[string] = json.dumps("/".join(parts[-length:]))
    return json.loads(JSON_STRING.sub(lambda match: ends.get(match[0], match[0]), text))


def _make_run(folder: Path, source: dict[str, Any]) -> str:
    """Make a run folder of the downloaded files, and return the name of its checkpoint.

    Raises:
        CheckpointError: `bundle.json` or a file is damaged.
    """
    try:
        info = read_json(folder / INFO_FILE)
        digests = {str(name): str(digest) for name, digest in info["sha256"].items()}
    except (ValueError, KeyError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{folder / INFO_FILE}: damaged ({error}); pull again") from None
    checkpoint = check_info(folder, info)
    for name in PUBLIC_FILES:
        path, digest = folder / name, digests.get(name)
        if digest and not (path.exists() and sha256_of(path) == digest):
            raise CheckpointError(
                f"{path}: missing or damaged; pull again, or ask its owner to push again"
            )
    weights = folder / "checkpoints" / checkpoint
    weights.mkdir(parents=True)
    for name in {Path(name).parts[0] for name in WEIGHTS}:
        if (folder / name).exists():
            (folder / name).rename(weights / name)
    record_checksums(weights, {MODEL_FILE: sha256_of(weights / MODEL_FILE)})
    checked = [folder / CONFIG_FILE, *folder.glob("*.vocab.txt"), *folder.glob("*.spm.model")]
    record_checksums(folder, {path.name: sha256_of(path) for path in checked})
    write_json(folder / BEST_FILE, pointer_to(checkpoint))
    write_json(folder / INFO_FILE, {**info, **source}, indent=2)
    for path in folder.rglob("*"):
        synchronize(path)
    return checkpoint

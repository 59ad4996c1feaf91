"""`nmt doctor`: reads every file of a run, a bundle or prepared data, and says what is damaged and
what can be done about it.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.commands.options import JsonOption, to_json
from nmt.config.parts import PointerName
from nmt.config.schema import Config
from nmt.data.corpus import SPLITS, Corpus, read_sentences
from nmt.data.manifest import (
    MANIFEST,
    check_content_hash,
    check_files,
    load_manifest,
    prepared_config,
)
from nmt.errors import CheckpointError, NmtError, NmtWarning, pass_on_lack_of_memory
from nmt.extras.lexicon.lexicon import Lexicon
from nmt.extras.neighbors.model import load_pairs
from nmt.extras.share.bundle import holds_weights_only, unpacked
from nmt.files import CHECKSUMS_FILE, read_checksums, sha256_of, warn_if_changed
from nmt.run.checkpoint import OPTIMIZER_FILE, is_average, load_weights, read_progress, read_tensors
from nmt.run.folder import (
    LEXICON_FILE,
    NEIGHBORS_FILE,
    PROVENANCE_FILE,
    build_model,
    check_same_data,
    find_run,
    holds_run,
    is_training,
    load_run_config,
    load_tokenizers,
    load_vocabularies,
    open_checkpoints,
)
from nmt.text.tokenizers import SIDES

State = Literal["ok", "warning", "damaged"]


def command(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help=(
                "Run folder, a file of `nmt bundle`, or prepared folder. Default: the newest in "
                "runs/."
            ),
            metavar="RUN|DATA",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """The command line."""
    findings = run(folder)
    print(
        to_json([*map(asdict, findings)])
        if as_json
        else "\n".join(finding.to_row() for finding in findings)
    )
    if text := failure(findings):
        raise NmtError(text)


@dataclass(frozen=True)
class Finding:
    """A part of the folder. text: the error or the warning, with its remedy; empty if the part is
    in order.
    """

    part: str
    state: State
    text: str = ""

    def to_row(self) -> str:
        """A line for the screen."""
        return f"{self.state:<9}{self.text or self.part}"


def run(folder: Path | None = None) -> list[Finding]:
    """Check a run (default: the newest one), a bundle or a prepared folder. Nothing is changed.

    Raises:
        CheckpointError: there is no run, no bundle and no prepared data.
    """
    if folder is not None and folder.is_file():
        return _check_bundle(folder)
    is_prepared = folder is not None and not holds_run(folder) and (folder / MANIFEST).exists()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NmtWarning)  # `_check` reports them
        return list(
            _check_prepared(folder)
            if folder is not None and is_prepared
            else _check_run(find_run(folder))
        )


def _check_bundle(path: Path) -> list[Finding]:
    """The unpacked files, under the name of the bundle."""
    try:
        with unpacked(path) as run:
            return [
                replace(finding, text=finding.text.replace(str(run), str(path)))
                for finding in _check_run(run)
            ]
    except CheckpointError as error:
        return [Finding("bundle", "damaged", str(error))]


def _check(part: str, *reads: Callable[[], object]) -> Finding:
    """Read a part; its first error, or else its first warning, is the finding."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NmtWarning)
        try:
            for read in reads:
                read()
        except (NmtError, OSError) as error:
            pass_on_lack_of_memory(error)
            return Finding(part, "damaged", str(error))
    text = next(
        (str(warning.message) for warning in caught if issubclass(warning.category, NmtWarning)), ""
    )
    return Finding(part, "warning" if text else "ok", text)


def _check_prepared(folder: Path) -> Iterator[Finding]:
    yield (finding := _check(MANIFEST, partial(load_manifest, folder)))
    if finding.state == "damaged":
        return
    manifest = load_manifest(folder)
    contents = [partial(check, folder, manifest) for check in (check_files, check_content_hash)]
    yield _check("sizes and contents", *contents)
    yield _check("vocabularies", partial(load_vocabularies, folder))
    yield _check(
        "configuration and tokenizers",
        lambda: load_tokenizers(folder, prepared_config(folder, manifest)),
    )
    for split in SPLITS:
        texts = (
            [partial(read_sentences, folder, split, side) for side in SIDES]
            if split != "train"
            else []
        )
        yield _check(f"{split} data", partial(Corpus.load, folder, split), *texts)
    for file in manifest["inputs"]:
        path = Path(file["path"])
        if not path.is_file():
            yield Finding(
                file["role"],
                "warning",
                f"{path}: missing; it is needed only to prepare this data again",
            )
        elif sha256_of(path) != file["sha256"]:
            yield Finding(
                file["role"],
                "warning",
                f"{path}: has changed since; to prepare this data again, restore it",
            )
        else:
            yield Finding(f"input {path}", "ok")


def _check_run(folder: Path) -> Iterator[Finding]:
    yield (finding := _check("config.yaml", partial(load_run_config, folder)))
    if finding.state == "damaged":
        return
    config = load_run_config(folder)
    yield _check(CHECKSUMS_FILE, partial(_read_checksums, folder))
    yield _check(MANIFEST, partial(load_manifest, folder))
    yield (vocabularies := _check("vocabularies", partial(load_vocabularies, folder)))
    yield _check("tokenizers", partial(load_tokenizers, folder, config))
    if (folder / PROVENANCE_FILE).exists():
        yield _check(PROVENANCE_FILE, partial(warn_if_changed, folder / PROVENANCE_FILE))
    if (folder / LEXICON_FILE).exists():
        yield _check(LEXICON_FILE, partial(Lexicon.load, folder / LEXICON_FILE))
    if (folder / NEIGHBORS_FILE).exists():
        yield _check(NEIGHBORS_FILE, partial(load_pairs, folder / NEIGHBORS_FILE))
    if vocabularies.state != "damaged":
        yield from _check_checkpoints(folder, config)
    data = _check(
        f"training data {config.prepared_folder}",
        partial(check_same_data, folder, config.prepared_folder),
    )
    # Only `train --resume`, `evaluate`, `average`, `lexicon` and `neighbors` need it.
    yield (
        data
        if data.state == "ok"
        else Finding(data.part, "warning", f"{data.text}; translation does not need it")
    )


def _read_checksums(folder: Path) -> None:
    if not read_checksums(folder):
        text = (
            f"{folder}: has no checksums, an earlier version of nmt made it; its contents "
            "cannot be checked"
        )
        warnings.warn(text, NmtWarning, stacklevel=2)


def _check_checkpoints(folder: Path, config: Config) -> Iterator[Finding]:
    """The two pointers, each checkpoint that they name, and leftovers of killed processes."""
    checkpoints, model = open_checkpoints(folder, config), build_model(folder, config)
    pointers: tuple[PointerName, ...] = ("best", "last")
    pointer_findings = [
        _check(f"{pointer}.json", partial(checkpoints.find, pointer)) for pointer in pointers
    ]
    yield from pointer_findings
    intact, damaged = [], any(finding.state == "damaged" for finding in pointer_findings)
    named = (
        None
        if damaged
        else {kept.checkpoint for pointer in pointers for kept in checkpoints.kept(pointer)}
    )
    for path in sorted(
        path for path in checkpoints.folder.glob("*-*") if not path.name.startswith(".")
    ):
        reads: list[Callable[[], object]] = [partial(load_weights, path, model)]
        if not is_average(path.name) and not holds_weights_only(folder):
            reads.append(partial(load_weights, path, model, raw=True))
            reads += [partial(read_tensors, path / OPTIMIZER_FILE), partial(read_progress, path)]
        finding = _check(f"checkpoint {path.name}", *reads)
        if finding.state != "damaged":
            intact.append(path)
        elif named is not None and path.name not in named:
            text = (
                f"{path}: incomplete, and neither best.json nor last.json names it: a killed "
                "process was deleting it"
            )
            finding = Finding(
                finding.part,
                "warning",
                f"{text}; the next training deletes it, or delete it yourself",
            )
        else:
            damaged = True
        yield finding
    if damaged and intact:
        names = ", ".join(path.name for path in intact)
        yield Finding(
            "remedy",
            "warning",
            f"intact checkpoints: {names}; `nmt translate --run {intact[-1]}` uses one of them",
        )
    leftovers = [path.name for path in checkpoints.folder.glob(".*.tmp")]
    if leftovers and not is_training(folder):
        text = (
            f"{checkpoints.folder}: {', '.join(leftovers)} is left of a killed process; the "
            "next training deletes it"
        )
        yield Finding("leftovers", "warning", text)


def failure(findings: list[Finding]) -> str | None:
    """A line about the damaged parts; None if there are none."""
    damaged = [finding.part for finding in findings if finding.state == "damaged"]
    return f"damaged: {', '.join(damaged)}" if damaged else None

"""`nmt init`: writes a project, with the sample or with a configuration for the user's own data."""

import json
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.commands.options import to_json
from nmt.config.load import config_from_dict
from nmt.config.parts import choices
from nmt.config.schema import Config, SourceConfig
from nmt.config.yaml_text import comment, parse, to_yaml
from nmt.data.formats import Languages
from nmt.data.languages import SAME_WORDS
from nmt.data.manifest import MANIFEST
from nmt.errors import ConfigError, DataError
from nmt.evaluation.scores import choose_tokenizer
from nmt.extras.init.inspection import PairFiles, inspect
from nmt.extras.init.measurement import Measures, by_file, measure
from nmt.extras.init.proposal import load_run_to_fine_tune, propose, propose_specialist
from nmt.extras.init.tatoeba import expected, source_of
from nmt.files import explain_write_errors, write_text
from nmt.report.table import label_rows

SCHEMA_FILE = "schema.json"


def command(
    folder: Annotated[
        Path, typer.Argument(help="Folder to write; . is the current one.", metavar="DIR")
    ],
    data: Annotated[
        list[Path] | None,
        typer.Option(
            "--data",
            help="Table, TMX, JSON, Parquet, PO or XLIFF with pairs (also .gz, .zip), or several: "
            "a pattern, a folder, or given again; or two files with a sentence per line.",
            metavar="FILE",
        ),
    ] = None,
    direction: Annotated[
        str | None,
        typer.Option(
            "--direction",
            help="Source and target language, for example en-de. Default: as the data looks.",
            metavar="A-B",
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Run to fine-tune with the data: same model, same subwords.",
            metavar="RUN",
        ),
    ] = None,
) -> None:
    """Write a project; no file is replaced. Without data, `nmt prepare` downloads the pairs of the
    direction; without direction, too, it has the sample that comes with nmt.

    Raises:
        ConfigError: the direction is not one.
        DataError: the data cannot be used, its languages are not clear, or the folder holds a file
            of the same name.
    """
    wanted = None if direction is None else _parse_direction(direction)
    if run is not None and not data:
        raise ConfigError("--from: name the data for fine-tuning with --data")
    if folder.exists() and not folder.is_dir():
        hint = " (a pattern after --data needs quotes)" if data else ""
        raise DataError(f"{folder}: is a file; name a folder{hint}")
    if data:
        found, contents = _start_with_data(folder, data, wanted, run)
    elif wanted:
        found, contents = _start_with_web(folder, wanted)
    else:
        found, contents = _start_with_sample()
    for path in map(folder.joinpath, contents):
        if path.exists():
            raise DataError(f"{path}: exists already, nothing was changed; name another folder")
    contents[SCHEMA_FILE] = f"{to_json(json_schema())}\n"
    with explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in reversed(contents.items()):  # the configuration last
            write_text(folder / name, content)
    written = (str(folder / name) for name in contents)
    for label, text in (*found.items(), *label_rows("written", written)):
        print(f"{label:<12}{text}")


def _parse_direction(direction: str) -> Languages:
    """Source and target language, without regions: "en-fr-CA" and "en-fr_CA" give "en", "fr".

    Raises:
        ConfigError: it is not clear what the two languages are.
    """
    code = r"([a-z]{2,3})(?:[-_](?:[A-Z][a-z]{3}|[A-Z]{2}|\d{3})|_[a-z]{2,4})*"
    match = re.fullmatch(f"{code}-{code}", direction)
    if match is None:
        raise ConfigError(
            f"--direction {direction}: must be two language codes, for example en-de or en-fr"
        )
    return match[1], match[2]


def _start_with_sample() -> tuple[dict[str, str], dict[str, str]]:
    """Facts for the user by label, and the content of each file."""
    text = shipped_file("sample.yaml").read_text(encoding="utf-8")
    text = text.replace("data/sample/sample.tsv", "sample.tsv")
    pairs = shipped_file("sample.tsv").read_text(encoding="utf-8")
    found = (
        f"the sample that comes with nmt: {len(pairs.splitlines()):,} English-German pairs, a "
        "minute of training"
    )
    name = parse(text, "sample.yaml")["name"]
    return {"data": found}, {f"{name}.yaml": comment(text), "sample.tsv": pairs}


def _start_with_web(folder: Path, languages: Languages) -> tuple[dict[str, str], dict[str, str]]:
    """As `_start_with_sample`, for pairs that `nmt prepare` downloads."""
    source, name = source_of(languages), _project_name(folder)
    found = expected(name, languages)
    values = propose(name, "-".join(languages), source, found)
    config = config_from_dict(values)
    urls = source["url"] if isinstance(source["url"], list) else [source["url"]]
    facts = {
        "data": f"{urls[0]}, which `nmt prepare` downloads",
        "license": "CC BY 2.0 FR, of the contributors of tatoeba.org",
        "pairs": f"sizes are for {found.count}; `nmt prepare` says how many there are",
        "direction": config.data.direction,
    }
    return {**facts, **_proposals(config)}, {f"{name}.yaml": _text(values, found.count)}


def _start_with_data(
    folder: Path, paths: Sequence[Path], wanted: Languages | None, run: Path | None
) -> tuple[dict[str, str], dict[str, str]]:
    """As `_start_with_sample`.

    Args:
        wanted: source and target language, if the user names them. run: to fine-tune.
    """
    parent = None if run is None else load_run_to_fine_tune(run, wanted)
    if parent is not None:
        wanted = parent.data.src_language, parent.data.tgt_language
    files = inspect(paths, wanted)
    languages = files.languages(wanted)
    source = files.source(languages, partial(_seen_from, folder))
    direction = wanted or languages
    found = measure(SourceConfig(**source), files.by_language(languages), direction)
    name = _project_name(folder)
    general = None
    if run is None or parent is None:
        values, purpose = propose(name, "-".join(direction), source, found), ""
    else:
        if (parent.prepared_folder / MANIFEST).exists():
            general = Path(_seen_from(folder, parent.prepared_folder))
        values = propose_specialist(name, source, found, _seen_from(folder, run), parent, general)
        purpose = f", to fine-tune {run}"
    config = config_from_dict(values)
    facts = _facts(files, languages, found, config, is_guess=wanted is None) | _proposals(config)
    if parent is not None and general is None:
        facts["general"] = (
            f"none: {parent.prepared_folder}, the data of the run, is not there; prepare it again "
            "to train with its pairs beside yours"
        )
    return facts, {f"{name}.yaml": _text(values, f"{found.count}{purpose}")}


def _project_name(folder: Path) -> str:
    return re.sub(r"[^\w.-]+", "-", folder.resolve().name).lstrip(".-") or "project"


def _text(values: dict[str, Any], purpose: str) -> str:
    """The file of a configuration."""
    return (
        f"# yaml-language-server: $schema={SCHEMA_FILE}\n"
        f"# Written by `nmt init` for {purpose}. Every value is a proposal; "
        f"{SCHEMA_FILE} lists all keys.\n{comment(to_yaml(values))}"
    )


def _seen_from(folder: Path, path: Path) -> str:
    """A path inside of the project as seen from there; another one whole."""
    root, path = folder.resolve(), path.resolve()
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def _facts(
    files: PairFiles, languages: Languages, found: Measures, config: Config, *, is_guess: bool
) -> dict[str, str]:
    """What the data looks like."""
    facts = {"data": f"{' and '.join(map(str, files.given))}: {found.count}, {files.layout}"}
    if listing := by_file(found.texts):
        facts["files"] = listing
    n_dropped = sum(found.dropped.values())
    if n_dropped:
        listing = ", ".join(
            f"{count:,} {reason}" for reason, count in found.dropped.items() if count
        )
        first = "" if found.is_all else "the first "
        facts["dropped"] = f"{n_dropped:,} of {first}{found.n_read:,}: {listing}"
    if found.suspicious:
        facts["suspicious"] = f"\n{'':12}".join(found.suspicious.values())
    facts["columns" if files.format != "lines" else "languages"] = ", ".join(
        f"{column.key} {language} {json.dumps(column.example, ensure_ascii=False)}"
        for column, language in zip(files.columns, languages, strict=True)
    )
    guess = is_guess and not all(column.is_named for column in files.columns)
    alike = [code for code, like in SAME_WORDS.items() if like in languages]
    others = f", which may also be {choices(alike)}" if alike else ""
    doubt = f" (guessed from the texts{others}; if it is wrong, use --direction)" if guess else ""
    return {**facts, "direction": f"{config.data.direction}{doubt}"}


def _proposals(config: Config) -> dict[str, str]:
    """What the configuration proposes."""
    model, training, split = config.model, config.training, config.data.split
    like = config.vocabulary.like
    size = f"{config.tokenizer.size:,} subwords per language" if like is None else f"of {like}"
    general = (config.data.sources or {}).get("general")
    beside = (
        "" if general is None else f"; {general.share:.0%} of the training pairs are of the run"
    )
    remark = choose_tokenizer(config.data.tgt_language, [])[1]
    return {
        **({"BLEU": remark} if remark else {}),
        "split": f"{split.dev:,} pairs for dev, {split.test:,} for test, the others for training"
        + beside,
        "tokenizer": f"{config.tokenizer.kind}, {size}",
        "model": f"embeddings {model.embedding_size}, encoder 2 x {model.encoder.hidden_size}, "
        f"decoder {model.decoder.layers} x {model.decoder.hidden_size}",
        "training": f"{training.max_steps:,} updates with {training.batch.size} "
        f"{training.batch.unit} each",
    }


def shipped_file(name: str) -> Path:
    """The sample's data or configuration: in an installed package, or in a clone."""
    package = Path(__file__).parent.parent.parent
    places = (
        package / "starter" / name,
        package.parent / "data" / "sample" / name,
        package.parent / "configs" / name,
    )
    return next(path for path in places if path.exists())


def json_schema() -> dict[str, Any]:
    """The JSON schema of a configuration, with which editors complete, explain and check its keys.
    Rules between keys (nmt/config/rules.py) are not part of it.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of nmt",
        **_tidied(Config.model_json_schema()),
    }


def _tidied(node: Any) -> Any:
    """Without titles, which repeat names, and defaults of sections, which their keys repeat."""
    if isinstance(node, list):
        return [_tidied(item) for item in node]
    if isinstance(node, dict):
        return {
            key: _tidied(item)
            for key, item in node.items()
            if not isinstance(item, {"title": str, "default": dict}.get(key, ()))
        }
    return node

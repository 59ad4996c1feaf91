"""`nmt init`: writes a project, with the sample or with a configuration for the user's own data."""

import json
import re
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.commands.options import to_json
from nmt.config.load import config_from_dict
from nmt.config.schema import DIRECTION_PATTERN, PATTERN_TEXTS, Config
from nmt.config.yaml_text import comment, parse, to_yaml
from nmt.errors import ConfigError, DataError
from nmt.extras.init.inspection import (
    SEPARATORS,
    PairFiles,
    inspect_files,
    inspect_table,
    read_rows,
)
from nmt.files import explain_write_errors, write_text
from nmt.report.table import label_rows

SCHEMA_FILE = "schema.json"
MIN_PAIRS = 200
UNSPACED = ("zh", "ja", "th", "lo", "my", "km")  # languages without spaces between words


# For a number of pairs up to the first value: size of the embeddings and of each direction of the
# encoder; size of the decoder's layers; whether the output layer has the weights of the target
# embedding; subwords; batch size; updates; dropout of the units, the source embedding and the
# encoder output. The third is configs/tatoeba.yaml; docs/experiments.md has scores of the others.
SIZES = (
    (5_000, 128, 192, True, 1000, 32, 4000, (0.5, 0.3, 0.4)),
    (50_000, 192, 256, True, 3000, 64, 8000, (0.5, 0.3, 0.4)),
    (300_000, 256, 384, False, 5000, 96, 11000, (0.3, 0.2, 0.2)),
    (inf, 384, 512, False, 16000, 128, 20000, (0.2, 0.1, 0.1)),
)


def print_schema() -> None:
    print(to_json(json_schema()))
    raise typer.Exit


def _print_schema(is_wanted: bool) -> None:
    if is_wanted:
        print_schema()


def command(
    folder: Annotated[
        Path, typer.Argument(help="Folder to write; . is the current one.", metavar="DIR")
    ],
    data: Annotated[
        list[Path] | None,
        typer.Option(
            "--data",
            help="Table with a pair per line (tabs, commas; also .gz, .zip); or, given twice, "
            "two files with a sentence per line.",
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
    _schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            help="Only print the JSON schema of configurations, for editors.",
            is_eager=True,
            callback=_print_schema,
        ),
    ] = False,
) -> None:
    """Write a project; no file is replaced. Without data, it has the sample that comes with nmt.

    Raises:
        ConfigError: there are more than two files, or the direction is not one.
        DataError: the data cannot be used, its languages are not clear, or the folder holds a file
            of the same name.
    """
    if direction is not None and not re.match(DIRECTION_PATTERN, direction):
        raise ConfigError(f"--direction {direction}: must be {PATTERN_TEXTS[DIRECTION_PATTERN]}")
    if data and len(data) > 2:
        raise ConfigError("--data: give one table, or two files with a sentence per line")
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder}: is a file; name a folder")
    if data:
        found, contents = _start_with_data(folder, data, direction)
    else:
        found, contents = _start_with_sample(direction)
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


def _start_with_sample(direction: str | None) -> tuple[dict[str, str], dict[str, str]]:
    """Facts for the user by label, and the content of each file."""
    text = shipped_file("sample.yaml").read_text(encoding="utf-8")
    text = text.replace("data/sample/sample.tsv", "sample.tsv")
    if direction is not None:
        if {*direction.split("-")} != {"en", "de"}:
            raise ConfigError(
                f"--direction {direction}: the sample has English and German; name your own pairs "
                "with --data"
            )
        text = text.replace("direction: en-de", f"direction: {direction}")
    pairs = shipped_file("sample.tsv").read_text(encoding="utf-8")
    found = (
        f"the sample that comes with nmt: {len(pairs.splitlines()):,} English-German pairs, a "
        "minute of training"
    )
    name = parse(text, "sample.yaml")["name"]
    return {"data": found}, {f"{name}.yaml": comment(text), "sample.tsv": pairs}


def _start_with_data(
    folder: Path, data: Sequence[Path], direction: str | None
) -> tuple[dict[str, str], dict[str, str]]:
    """As `_start_with_sample`."""
    files = inspect_table(data[0]) if len(data) == 1 else inspect_files(*data)
    if files.n_pairs < MIN_PAIRS:
        raise DataError(
            f"{data[0]}: has {files.n_pairs} pairs; training needs at least {MIN_PAIRS}, and "
            "better some thousands"
        )
    languages = _languages(files, direction)
    name = re.sub(r"[^\w.-]+", "-", folder.resolve().name).lstrip(".-") or "project"
    source, tables = _source(files, languages, folder), dict[str, str]()
    if files.separator == ",":  # nmt reads tabs
        source["path"] = f"{name}.tsv"
        tables[f"{name}.tsv"] = "".join(
            "\t".join(" ".join(cell.split()) for cell in row) + "\n"
            for row in read_rows(files.paths[0], files.separator)
        )
    values = _propose(name, direction or "-".join(languages), source, files)
    text = (
        f"# yaml-language-server: $schema={SCHEMA_FILE}\n"
        f"# Written by `nmt init` for {files.n_pairs:,} pairs. Every value is a proposal; "
        f"`nmt init --schema` lists all keys.\n{comment(to_yaml(values))}"
    )
    found = _found(files, languages, config_from_dict(values))
    return found, {f"{name}.yaml": text, **tables}


def _languages(files: PairFiles, direction: str | None) -> tuple[str, str]:
    """The language of each of the two columns or files.

    Raises:
        DataError: a language is not clear, and there is no direction.
    """
    first, second = guesses = [column.language for column in files.columns]
    if direction is not None:
        src, tgt = direction.split("-")
        return (tgt, src) if first == tgt or second == src else (src, tgt)
    if first is None or second is None or first == second:
        names = " and ".join(guess or "unknown" for guess in guesses)
        raise DataError(
            f"{files.paths[0]}: the languages are not clear ({names}); name them with "
            "--direction, for example en-de"
        )
    return first, second


def _source(files: PairFiles, languages: tuple[str, str], folder: Path) -> dict[str, Any]:
    """The section data.source. A path inside of the project is written as seen from there."""
    root, paths = folder.resolve(), [path.resolve() for path in files.paths]
    names = [
        (path.relative_to(root) if path.is_relative_to(root) else path).as_posix() for path in paths
    ]
    if len(names) == 2:
        return {"format": "lines", "files": dict(zip(languages, names, strict=True))}
    columns = [column.number if column.name is None else column.name for column in files.columns]
    return {
        "format": "tsv",
        "path": names[0],
        "columns": dict(zip(languages, columns, strict=True)),
    }


def _propose(name: str, direction: str, source: dict[str, Any], files: PairFiles) -> dict[str, Any]:
    """The keys and values of a configuration for this data."""
    _, embedding, decoder, tied, subwords, batch, steps, dropout = next(
        sizes for sizes in SIZES if files.n_pairs <= sizes[0]
    )
    n_held_out = min(2000, max(50, files.n_pairs // 15))
    n_characters = max(column.n_characters for column in files.columns)
    unspaced = any(language in UNSPACED for language in direction.split("-"))
    return {
        "name": name,
        "data": {
            "direction": direction,
            "source": source,
            "split": {"dev": n_held_out, "test": n_held_out},
        },
        "tokenizer": {
            "kind": "unigram" if unspaced else "bpe",
            "size": max(subwords, 2 * n_characters),
        },
        "model": {
            "embedding_size": embedding,
            "encoder": {
                "cell": "lstm",
                "hidden_size": embedding,
                "layers": 1,
                "bidirectional": True,
            },
            "attention": {"score": "general", "scaled": True},
            "decoder": {
                "kind": "gnmt",
                "cell": "lstm",
                "hidden_size": decoder,
                "layers": 2,
                "readout": "deep",
                "readout_size": embedding if tied else decoder,
            },
            "tie_embeddings": "target" if tied else "none",
            "lexical_bias": 20,
            "lexical_words": 40000,
            "dropout": dropout[0],
            "src_embedding_dropout": dropout[1],
            "tgt_embedding_dropout": 0.1,
            "encoder_output_dropout": dropout[2],
        },
        "training": {
            "epochs": 100,
            "max_steps": steps,
            "batch": {"size": batch},
            "optimizer": "adam",
            "learning_rate": {
                "peak": 0.004,
                "schedule": "linear",
                "warmup_steps": 200,
                "steps": None,
            },
            "weight_decay": 0.00001,
            "label_smoothing": 0.1,
            "validate_every": steps // 5,
            "validation_pairs": min(1000, n_held_out),
            "precision": "auto",
        },
        "decoding": {"beam": 5},
    }


def _found(files: PairFiles, languages: tuple[str, str], config: Config) -> dict[str, str]:
    """What the data looks like, and what the configuration proposes for it."""
    facts = {"data": f"{' and '.join(map(str, files.paths))}: {files.n_pairs:,} pairs"}
    if files.separator:
        header = "with" if any(column.name for column in files.columns) else "no"
        facts["data"] += f", separated by {SEPARATORS[files.separator]}, {header} header"
        facts["columns"] = ", ".join(
            f"{column.number} {language} {json.dumps(column.example, ensure_ascii=False)}"
            for column, language in zip(files.columns, languages, strict=True)
        )
    else:
        facts["languages"] = ", ".join(languages)
    model, training, split = config.model, config.training, config.data.split
    return {
        **facts,
        "direction": config.data.direction,
        "split": f"{split.dev:,} pairs for dev, {split.test:,} for test, the others for training",
        "tokenizer": f"{config.tokenizer.kind}, {config.tokenizer.size:,} subwords per language",
        "model": f"embeddings {model.embedding_size}, encoder 2 x {model.encoder.hidden_size}, "
        f"decoder {model.decoder.layers} x {model.decoder.hidden_size}",
        "training": f"{training.max_steps:,} updates with {training.batch.size} sentences each",
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
    schema = _tidied(Config.model_json_schema())
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": "Configuration of nmt", **schema}


def _tidied(node: Any) -> Any:
    """Without titles, which repeat names, and defaults of sections, which their keys repeat."""
    if isinstance(node, list):
        return [_tidied(item) for item in node]
    if isinstance(node, dict):
        redundant = {"title": str, "default": dict}
        return {
            key: _tidied(item)
            for key, item in node.items()
            if not isinstance(item, redundant.get(key, ()))
        }
    return node

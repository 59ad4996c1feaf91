"""`nmt init`: writes a starter project, with the sample that comes with nmt or with a configuration
for the user's own data.
"""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.commands.options import JsonOption, to_json
from nmt.config.load import config_from_dict
from nmt.config.schema import DIRECTION_PATTERN
from nmt.config.yaml_text import comment, parse, to_yaml
from nmt.data.checks import language_of_name
from nmt.errors import ConfigError, DataError
from nmt.extras.init import schema
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
MODELINE = f"# yaml-language-server: $schema={SCHEMA_FILE}\n"
MIN_PAIRS = 200
MAX_EXAMPLE = 30  # characters of an example on the screen
UNSPACED = ("zh", "ja", "th", "lo", "my", "km")  # languages without spaces between words


def _print_schema(is_wanted: bool) -> None:
    if is_wanted:
        schema.command()
        raise typer.Exit


def command(
    folder: Annotated[
        Path, typer.Argument(help="Folder to write; . is the current one.", metavar="DIR")
    ],
    data: Annotated[
        list[Path] | None,
        typer.Option(
            "--data",
            help=(
                "Table with a pair per line (tabs, commas; also .gz, .zip); or, given twice, "
                "two files with a sentence per line."
            ),
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
    as_json: JsonOption = False,
) -> None:
    """The command line."""
    project = run(folder, data or (), direction)
    print(to_json(project.to_dict()) if as_json else project.to_text())


@dataclass(frozen=True)
class Sizes:
    """A model and a training that suit a number of pairs, up to `max_pairs`.

    Attributes:
        embedding: size of the embeddings, and of each direction of the encoder. decoder: size of
            its layers.
        tied: whether the output layer has the weights of the target embedding.
        dropout: of the units, the source embedding, and the encoder output.
    """

    max_pairs: float
    embedding: int
    decoder: int
    tied: bool
    subwords: int
    batch: int
    steps: int
    dropout: tuple[float, float, float]


# The third is configs/tatoeba.yaml; docs/experiments.md has scores of the first two.
SIZES = (
    Sizes(5_000, 128, 192, tied=True, subwords=1000, batch=32, steps=4000, dropout=(0.5, 0.3, 0.4)),
    Sizes(
        50_000, 192, 256, tied=True, subwords=3000, batch=64, steps=8000, dropout=(0.5, 0.3, 0.4)
    ),
    Sizes(
        300_000, 256, 384, tied=False, subwords=5000, batch=96, steps=11000, dropout=(0.3, 0.2, 0.2)
    ),
    Sizes(
        inf, 384, 512, tied=False, subwords=16000, batch=128, steps=20000, dropout=(0.2, 0.1, 0.1)
    ),
)


@dataclass(frozen=True)
class Project:
    """What `nmt init` has written.

    Attributes:
        files: the paths, the configuration first.
        found: facts about the data and the proposed settings, by label.
        example: a sentence to translate.
    """

    folder: Path
    files: list[Path]
    found: dict[str, str]
    example: str

    @property
    def next_commands(self) -> list[str]:
        """The next commands."""
        config = shlex.quote(self.files[0].name)
        enter = (
            [] if self.folder.resolve() == Path.cwd() else [f"cd {shlex.quote(str(self.folder))}"]
        )
        work = [f"nmt prepare -c {config}", f"nmt train -c {config}", "nmt evaluate"]
        return [*enter, *work, f"nmt translate {shlex.quote(self.example)}"]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "files": [str(path) for path in self.files],
            "found": self.found,
            "next": self.next_commands,
        }

    def to_text(self) -> str:
        """For the screen."""
        rows = [
            *self.found.items(),
            *label_rows("written", map(str, self.files)),
            *label_rows("next", self.next_commands),
        ]
        return "\n".join(f"{label:<12}{text}" for label, text in rows)


def run(folder: Path, data: Sequence[Path] = (), direction: str | None = None) -> Project:
    """Write a project into `folder`; no file there is replaced.

    Args:
        data: a table of pairs, or two files with a sentence per line; without any, the sample that
            comes with nmt is written.
        direction: source and target language; default: as the data looks.

    Raises:
        ConfigError: there are more than two files, or the direction is not one.
        DataError: the data cannot be used, its languages are not clear, or the folder holds a file
            of the same name.
    """
    if direction is not None and not re.match(DIRECTION_PATTERN, direction):
        raise ConfigError(
            f"--direction {direction}: must be source and target language codes, for example en-de"
        )
    if len(data) > 2:
        raise ConfigError("--data: give one table, or two files with a sentence per line")
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder}: is a file; name a folder")
    return (
        _start_with_data(folder, data, direction) if data else _start_with_sample(folder, direction)
    )


def _start_with_sample(folder: Path, direction: str | None) -> Project:
    text = shipped_file("sample.yaml").read_text(encoding="utf-8")
    text = text.replace("data/sample/sample.tsv", "sample.tsv")
    if direction is not None:
        if {*direction.split("-")} != {"en", "de"}:
            raise ConfigError(
                f"--direction {direction}: the sample has English and German; name your own pairs "
                "with --data"
            )
        text = text.replace("direction: en-de", f"direction: {direction}")
    config = parse(text, "sample.yaml")
    pairs = shipped_file("sample.tsv").read_text(encoding="utf-8")
    contents = {f"{config['name']}.yaml": comment(text), "sample.tsv": pairs}
    german, english = direction == "de-en", pairs.partition("\t")[0]
    found = {
        "data": (
            f"the sample that comes with nmt: {len(pairs.splitlines()):,} English-German "
            "pairs, a minute of training"
        )
    }
    return Project(
        folder, _write(folder, contents), found, "Der Hund schläft." if german else english
    )


def _start_with_data(folder: Path, data: Sequence[Path], direction: str | None) -> Project:
    files = inspect_table(data[0]) if len(data) == 1 else inspect_files(*data)
    if files.n_pairs < MIN_PAIRS:
        raise DataError(
            f"{data[0]}: has {files.n_pairs} pairs; training needs at least {MIN_PAIRS}, and "
            "better some thousands"
        )
    languages = _languages(files, direction)
    direction = direction or "-".join(languages)
    name = re.sub(r"[^\w.-]+", "-", folder.resolve().name).lstrip(".-") or "project"
    contents: dict[str, str] = {}
    source = _source(files, languages, folder)
    if files.separator not in ("", "\t"):  # nmt reads tabs
        source["path"] = f"{name}.tsv"
        contents[f"{name}.tsv"] = _as_tabs(files)
    sizes = next(sizes for sizes in SIZES if files.n_pairs <= sizes.max_pairs)
    values = _propose(name, direction, source, files, sizes)
    config_from_dict(values)
    heading = (
        f"# Written by `nmt init` for {files.n_pairs:,} pairs. Every value is a proposal; "
        "`nmt init --schema` lists all keys.\n"
    )
    text = MODELINE + heading + comment(to_yaml(values))
    found = _found(files, languages, values)
    example = files.columns[0 if languages[0] == direction.split("-")[0] else 1].example
    return Project(folder, _write(folder, {f"{name}.yaml": text, **contents}), found, example)


def _languages(files: PairFiles, direction: str | None) -> tuple[str, str]:
    """The language of each of the two columns or files.

    Raises:
        DataError: a language is not clear, and there is no direction.
    """
    guesses = [
        (
            language_of_name(path.name.removesuffix(".gz").rpartition(".")[2])
            if len(files.paths) == 2
            else None
        )
        or column.language
        for path, column in zip(files.paths * (3 - len(files.paths)), files.columns, strict=True)
    ]
    first, second = guesses
    if direction is None:
        if first is None or second is None or first == second:
            names = " and ".join(guess or "unknown" for guess in guesses)
            raise DataError(
                f"{files.paths[0]}: the languages are not clear ({names}); name them with "
                "--direction, for example en-de"
            )
        return first, second
    src, tgt = direction.split("-")
    return (tgt, src) if first == tgt or second == src else (src, tgt)


def _source(files: PairFiles, languages: tuple[str, str], folder: Path) -> dict[str, Any]:
    """The section data.source."""

    def written(path: Path) -> str:
        path, root = path.resolve(), folder.resolve()
        return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()

    if len(files.paths) == 2:
        paths = zip(languages, files.paths, strict=True)
        return {"format": "lines", "files": {language: written(path) for language, path in paths}}
    columns = {
        language: column.number if column.name is None else column.name
        for language, column in zip(languages, files.columns, strict=True)
    }
    return {"format": "tsv", "path": written(files.paths[0]), "columns": columns}


def _propose(
    name: str, direction: str, source: dict[str, Any], files: PairFiles, sizes: Sizes
) -> dict[str, Any]:
    """The keys and values of a configuration for this data."""
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
            "size": max(sizes.subwords, 2 * n_characters),
        },
        "model": {
            "embedding_size": sizes.embedding,
            "encoder": {
                "cell": "lstm",
                "hidden_size": sizes.embedding,
                "layers": 1,
                "bidirectional": True,
            },
            "attention": {"score": "general", "scaled": True},
            "decoder": {
                "kind": "gnmt",
                "cell": "lstm",
                "hidden_size": sizes.decoder,
                "layers": 2,
                "readout": "deep",
                "readout_size": sizes.embedding if sizes.tied else sizes.decoder,
            },
            "tie_embeddings": "target" if sizes.tied else "none",
            "lexical_bias": 20,
            "lexical_words": 40000,
            "dropout": sizes.dropout[0],
            "src_embedding_dropout": sizes.dropout[1],
            "tgt_embedding_dropout": 0.1,
            "encoder_output_dropout": sizes.dropout[2],
        },
        "training": {
            "epochs": 100,
            "max_steps": sizes.steps,
            "batch": {"size": sizes.batch},
            "optimizer": "adam",
            "learning_rate": {
                "peak": 0.004,
                "schedule": "linear",
                "warmup_steps": 200,
                "steps": None,
            },
            "weight_decay": 0.00001,
            "label_smoothing": 0.1,
            "validate_every": sizes.steps // 5,
            "validation_pairs": min(1000, n_held_out),
            "precision": "auto",
        },
        "decoding": {"beam": 5},
    }


def _found(files: PairFiles, languages: tuple[str, str], values: dict[str, Any]) -> dict[str, str]:
    """What the data looks like, and what the configuration proposes for it."""
    paths = " and ".join(map(str, files.paths))
    separator = ""
    held_out, model, training = values["data"]["split"]["dev"], values["model"], values["training"]
    if files.separator:
        separator = (
            f", separated by {SEPARATORS[files.separator]}, "
            f"{'with' if files.has_header else 'no'} header"
        )
        columns = [
            f"{column.number} {language} {json.dumps(_shorten(column.example), ensure_ascii=False)}"
            for column, language in zip(files.columns, languages, strict=True)
        ]
        unused = [
            str(i)
            for i in range(1, files.n_columns + 1)
            if i not in {column.number for column in files.columns}
        ]
        sides = {
            "columns": ", ".join(columns) + (f"; not used: {', '.join(unused)}" if unused else "")
        }
    else:
        sides = {"languages": ", ".join(languages)}
    return {
        "data": f"{paths}: {files.n_pairs:,} pairs{separator}",
        **sides,
        "direction": values["data"]["direction"],
        "split": f"{held_out:,} pairs for dev, {held_out:,} for test, the others for training",
        "tokenizer": (
            f"{values['tokenizer']['kind']}, {values['tokenizer']['size']:,} subwords per language"
        ),
        "model": f"embeddings {model['embedding_size']}, encoder 2 x "
        f"{model['encoder']['hidden_size']}, "
        f"decoder {model['decoder']['layers']} x {model['decoder']['hidden_size']}",
        "training": (
            f"{training['max_steps']:,} updates with {training['batch']['size']} sentences each"
        ),
    }


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_EXAMPLE else f"{text[: MAX_EXAMPLE - 3]}..."


def _as_tabs(files: PairFiles) -> str:
    """The table with tabs in place of its separator; a tab or a line break inside of a cell becomes
    a space.
    """
    rows = read_rows(files.paths[0], files.separator)
    return "".join("\t".join(" ".join(cell.split()) for cell in row) + "\n" for row in rows)


def _write(folder: Path, contents: dict[str, str]) -> list[Path]:
    """Raises: DataError if a file exists, or cannot be written."""
    for name in contents:
        if (folder / name).exists():
            text = "exists already, nothing was changed; name another folder"
            raise DataError(f"{folder / name}: {text}")
    text = json.dumps(schema.json_schema(), indent=2, ensure_ascii=False)
    files = {folder / name: content for name, content in contents.items()}
    files[folder / SCHEMA_FILE] = f"{text}\n"
    with explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in files.items():
            write_text(path, content)
    return list(files)


def shipped_file(name: str) -> Path:
    """The sample's data or configuration: in an installed package, or in a clone of the
    repository.
    """
    package = Path(__file__).parent.parent.parent
    clone = {
        "sample.tsv": package.parent / "data" / "sample" / name,
        "sample.yaml": package.parent / "configs" / name,
    }
    installed = package / "starter" / name
    return installed if installed.exists() else clone[name]

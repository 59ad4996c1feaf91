"""`nmt runs`: a table of all runs below a folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.commands.options import JsonOption, to_json
from nmt.config.parts import TOKENIZERS
from nmt.config.schema import Config
from nmt.errors import DataError, NmtError, printable
from nmt.extras.runs.summary import RunSummary, find_runs
from nmt.report.table import Table, TableCell
from nmt.run.folder import RUNS_FOLDER

HEADINGS = {
    "dev_bleu": "dev BLEU",
    "dev_loss": "dev loss",
    "test_score": "test",
    "bytes": "MB",
    "changed": "changed",
}


def command(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder that holds runs. Default: runs.", metavar="DIR")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """The command line."""
    rows = run(folder)
    print(to_json(rows) if as_json else to_table(rows))


def run(folder: Path | None = None) -> list[dict[str, Any]]:
    """The runs below `folder` (default `runs/`), ready for JSON; a damaged one has a `problem`.

    Raises:
        DataError: there is no such folder.
    """
    folder = folder or RUNS_FOLDER
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; name the folder that holds the runs")
    return [_row(path) for path in find_runs(folder)]


def _row(folder: Path) -> dict[str, Any]:
    try:
        summary = RunSummary.load(folder)
    except NmtError as error:
        return {"run": str(folder), "problem": " ".join(str(error).split())}
    validation, checkpoint = summary.best_validation or {}, summary.last or summary.best
    tests = [
        event
        for event in summary.evaluations
        if event.get("split") == "test" and event.get("scores")
    ]
    return {
        "run": str(folder),
        "state": summary.state,
        "name": summary.config.name,
        "direction": summary.config.data.direction,
        "model": describe_model(summary.config),
        "step": checkpoint.step if checkpoint else 0,
        "dev_bleu": validation.get("bleu"),
        "dev_loss": validation.get("loss"),
        "test_score": tests[-1]["scores"][0] if tests else None,
        "bytes": summary.bytes,
        "changed": summary.changed.isoformat(timespec="seconds"),
        "problem": "; ".join(summary.problems) or None,
    }


def describe_model(config: Config) -> str:
    """A model in short: tokens, encoder, attention, decoder."""
    tokenizer, encoder, attention, decoder = (
        config.tokenizer,
        config.model.encoder,
        config.model.attention,
        config.model.decoder,
    )
    tokens = (
        f"{tokenizer.kind} {tokenizer.size}"
        if TOKENIZERS[tokenizer.kind].trait("learned")
        else tokenizer.kind
    )
    sizes = [
        f"{part.hidden_size}" + (f"x{part.layers}" if part.layers > 1 else "")
        for part in (encoder, decoder)
    ]
    return f"{tokens}, {encoder.cell} {sizes[0]}, {attention.score}, {decoder.kind} {sizes[1]}"


def to_table(rows: Sequence[dict[str, Any]]) -> str:
    """For the screen: a table, then a line for each problem."""
    columns = (
        "run",
        "direction",
        "model",
        "state",
        "step",
        "dev_bleu",
        "dev_loss",
        "test_score",
        "bytes",
        "changed",
    )
    cells = [tuple(_cell(row, column) for column in columns) for row in rows if "state" in row]
    lines = [Table("runs", "", columns, cells, headings=HEADINGS).to_text()] if cells else []
    lines += [f"nmt: {row['problem']}" for row in rows if row["problem"]]
    return "\n".join(lines) or "no runs"


def _cell(row: dict[str, Any], column: str) -> TableCell:
    value = row[column]
    if value is None:
        return "-"
    if column == "test_score":
        return f"{value['metric']} {value['score']:.2f}"
    if column == "bytes":
        return round(int(value) / 1e6)
    if column == "changed":
        return str(value)[:16].replace("T", " ")
    if isinstance(value, float):
        return f"{value:6.2f}"
    return value if isinstance(value, int) else printable(str(value))

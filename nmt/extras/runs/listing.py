"""`nmt runs list`: a table of runs, and the keys in which they differ."""

import json
import shutil
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.commands.options import JsonOption, to_json
from nmt.config.parts import TOKENIZERS
from nmt.data.manifest import MANIFEST, is_location_key
from nmt.errors import DataError, NmtError, in_one_line, printable
from nmt.extras.runs.inspect import is_of, read_facts
from nmt.report.table import Table, TableCell
from nmt.run.checkpoint import is_average
from nmt.run.folder import JOURNAL_FILE, RUNS_FOLDER, holds_run

# Of the table of runs: key in JSON -> heading, and how a value is shown.
COLUMNS: dict[str, tuple[str, Callable[[Any], TableCell]]] = {
    "run": ("run", printable),
    "direction": ("direction", str),
    "model": ("model", printable),
    "state": ("state", str),
    "step": ("step", int),
    "dev_bleu": ("dev BLEU", "{:6.2f}".format),
    "dev_loss": ("dev loss", "{:6.2f}".format),
    "test_score": ("test", "{0[metric]} {0[score]:.2f}".format),
    "bytes": ("MB", lambda count: round(count / 1e6)),
    "changed": ("changed", lambda time: time[:16].replace("T", " ")),
}
MAX_KEYS = 5  # that are listed for each run


def find_runs(folder: Path) -> list[Path]:
    """The runs and damaged runs below `folder`, sorted; not those inside of other runs."""
    if not folder.is_dir():
        return []
    is_run = holds_run(folder) and (folder / MANIFEST).exists()
    if is_run or (folder / JOURNAL_FILE).exists() or (folder / "checkpoints").is_dir():
        return [folder]
    below = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    return [run for path in below for run in find_runs(path)]


def list_command(
    folder: Annotated[
        Path, typer.Argument(help="Folder that holds runs. Default: runs.", metavar="DIR")
    ] = RUNS_FOLDER,
    as_json: JsonOption = False,
) -> None:
    """`nmt runs list`: a damaged run has a `problem`.

    Raises:
        DataError: there is no such folder.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; name the folder that holds the runs")
    rows = [_row_of(path) for path in find_runs(folder)]
    whole = [row for row in rows if row["problem"] is None]
    _keep_differences(whole)
    if as_json:
        print(to_json(rows))
        return
    cells = [
        tuple("-" if row[key] is None else show(row[key]) for key, (_, show) in COLUMNS.items())
        for row in whole
    ]
    headings = tuple(heading for heading, _ in COLUMNS.values())
    lines = [Table("runs", "", headings, cells).to_text()] if cells else []
    lines += [f"nmt: {row['problem']}" for row in rows if row["problem"]]
    if whole and whole[0]["differences"]:
        lines += ["", "differences", *_difference_lines(whole)]
    print("\n".join(lines) or "no runs")


def _keep_differences(rows: Sequence[dict[str, Any]]) -> None:
    """Replace the settings of each run by those in which the runs differ. Names are none of them,
    nor places of equal data.
    """
    settings = [row.pop("settings") for row in rows]
    is_same_data = len({row["data"] for row in rows}) < 2
    defaults = {key: each["default"] for one in settings for key, each in one.items()}
    for key, default in defaults.items():
        values = [one[key]["value"] if key in one else default for one in settings]
        is_place = key == "name" or (is_same_data and is_location_key(key))
        if not is_place and any(value != values[0] for value in values):
            for row, value in zip(rows, values, strict=True):
                row["differences"][key] = value


def _difference_lines(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The differences, run by run. If there are many, those that most runs share come first, once,
    so that the others stand out.
    """
    lines = {
        printable(row["run"]): [_setting(*item) for item in row["differences"].items()]
        for row in rows
    }
    counts = Counter(text for texts in lines.values() for text in texts)
    if len(rows[0]["differences"]) > MAX_KEYS:
        shared = [text for text, count in counts.items() if 2 * count > len(rows)]
        lines = {"most runs": shared} | {
            run: [text for text in texts if text not in shared] for run, texts in lines.items()
        }
    width = max(map(len, lines))
    for run, texts in lines.items():
        yield textwrap.fill(
            "  ".join(texts) or "-",
            shutil.get_terminal_size().columns,
            initial_indent=f"{run:<{width}}  ",
            subsequent_indent=" " * (width + 2),
            break_long_words=False,
            break_on_hyphens=False,
        )


def _setting(key: str, value: Any) -> str:
    """The end of a key, and its whole value: long paths may differ anywhere."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return printable(f"{'.'.join(key.split('.')[-2:])}={text}")


def _row_of(folder: Path) -> dict[str, Any]:
    try:
        config, facts = read_facts(folder)
    except NmtError as error:
        return {"run": str(folder), "problem": in_one_line(error)}
    best, last = facts["best"] or facts["last"], facts["last"] or facts["best"]
    name = best["checkpoint"] if best else "step-0"
    measured = facts["averages" if is_average(name) else "validations"]
    of_best = [event for event in measured if best and event["step"] == best["step"]]
    validation = (of_best[-1:] or facts["validations"][-1:] or [{}])[0]
    scores = [
        event["scores"][0]
        for event in facts["evaluations"]
        if is_of(event, name) and event.get("split") == "test" and event.get("scores")
    ]
    tokenizer, encoder, decoder = config.tokenizer, config.model.encoder, config.model.decoder
    size = f" {tokenizer.size}" if TOKENIZERS[tokenizer.kind].trait("learned") else ""
    sizes = [
        f"{part.hidden_size}" + (f"x{part.layers}" if part.layers > 1 else "")
        for part in (encoder, decoder)
    ]
    return {
        **{key: facts[key] for key in ("run", "state", "name", "direction")},
        "model": f"{tokenizer.kind}{size}, {encoder.cell} {sizes[0]}, "
        f"{config.model.attention.score}, {decoder.kind} {sizes[1]}",
        "step": last["step"] if last else 0,
        "dev_bleu": validation.get("bleu"),
        "dev_loss": validation.get("loss"),
        "test_score": scores[-1] if scores else None,
        "bytes": facts["bytes"]["total"],
        "changed": facts["changed"],
        "data": facts["data"]["content"],
        "settings": facts["not_default"],
        "problem": None,
        "differences": {},
    }

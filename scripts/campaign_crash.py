"""Kill, starve and disturb the commands of nmt at every moment, and check that nothing is lost.

    python scripts/campaign_crash.py -o FOLDER [--trials 200] [--campaign NAME]... [--command
    NAME]... [--seed 1]

Each trial copies a small project, runs one command with one fault, and checks: the command ends in
time, without a traceback, and an error is one line; runs and prepared data that were complete
before are intact (`nmt doctor`); the next call works, leaves no stray files, and ends with the same
files as an undisturbed call: for a training, the same weights bit for bit.

FOLDER/trials.jsonl gets a line for each trial; a repeated call continues where the last one
stopped. At the end comes a table. A trial whose fault did not come proves nothing, and counts only
as tried. Exit status 1 if a trial lost. When the fault is fixed, `--repeat-lost` with the same
number of trials repeats as many as lost; not while another call writes into FOLDER.

It needs Linux and a C compiler. `docs/robustness.md` describes the campaigns.
"""

import argparse
import hashlib
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nmt.files import write_text
from scripts.faults.trial import Laboratory, local_hub, start_interposed

TRIALS_FILE, LOST_FILE = "trials.jsonl", "lost.jsonl"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="for trials.jsonl and the projects",
    )
    parser.add_argument(
        "--trials",
        type=int,
        default=200,
        metavar="N",
        help="whose fault comes, of each campaign with each command",
    )
    parser.add_argument(
        "--campaign", action="append", metavar="NAME", help="only this one; may be repeated"
    )
    parser.add_argument(
        "--command", action="append", metavar="NAME", help="only this one; may be repeated"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the faults")
    parser.add_argument(
        "--table", action="store_true", help="only print the table of the finished trials"
    )
    parser.add_argument(
        "--repeat-lost",
        action="store_true",
        help=f"move the trials that lost to {LOST_FILE}, and repeat them with the present nmt",
    )
    options = parser.parse_args()
    path = options.output / TRIALS_FILE
    if not options.table:
        start_interposed()
        with local_hub():
            run(options, path)
    rows = _read_trials(path)
    print(table(rows))
    if any(row["problems"] for row in rows):
        sys.exit(1)


def run(options: argparse.Namespace, path: Path) -> None:
    """Run the trials that are not in the file yet."""
    from scripts.faults.campaigns import CAMPAIGNS, Bench
    from scripts.faults.scenarios import SCENARIOS

    options.output.mkdir(parents=True, exist_ok=True)
    lost = move_lost(path, options.campaign, options.command) if options.repeat_lost else []
    lost_keys, n_lost = (
        {_key(row) for row in lost},
        Counter((row["campaign"], row["command"]) for row in lost),
    )
    rows = _read_trials(path)
    finished = {_key(row) for row in rows}
    fired = Counter((row["campaign"], row["command"]) for row in rows if row["fired"])
    bench = Bench(Laboratory(options.output / "project"), options.output, options.seed)
    pairs = [
        (name, scenario)
        for name in CAMPAIGNS
        for scenario in SCENARIOS
        if name in (options.campaign or CAMPAIGNS)
        and scenario.name in (options.command or [scenario.name])
    ]
    with path.open("a", encoding="utf-8") as file:
        for name, scenario in pairs:
            pair = name, scenario.name
            goal = fired[pair] + n_lost[pair] if options.repeat_lost else options.trials
            if fired[pair] >= goal:
                continue
            plan = [
                (
                    trial,
                    {
                        "campaign": name,
                        "command": scenario.name,
                        "fault": trial.fault,
                        "seed": options.seed,
                    },
                )
                for trial in CAMPAIGNS[name](bench, scenario, options.trials)
            ]
            plan.sort(key=lambda each: _key(each[1]) not in lost_keys)  # what lost comes first
            for trial, facts in plan:
                if fired[pair] >= goal:
                    break
                if _key(facts) in finished:
                    continue
                finished.add(_key(facts))
                start = _processor_time()
                row = {**facts, **trial.run()}
                row["seconds"] = round(_processor_time() - start, 2)
                fired[pair] += row["fired"]
                file.write(json.dumps(row) + "\n")
                file.flush()
                if row["problems"]:
                    print(
                        f"{name}, {scenario.name}, {trial.fault}: {'; '.join(row['problems'])}",
                        file=sys.stderr,
                    )


def move_lost(
    path: Path, campaigns: Collection[str] | None, commands: Collection[str] | None
) -> list[dict[str, Any]]:
    """Move the rows that lost, of these campaigns and commands, to `LOST_FILE`. Returns them."""
    kept: list[dict[str, Any]] = []
    lost: list[dict[str, Any]] = []
    for row in _read_trials(path):
        is_chosen = row["campaign"] in (campaigns or [row["campaign"]]) and row["command"] in (
            commands or [row["command"]]
        )
        (lost if is_chosen and row["problems"] else kept).append(row)
    with path.with_name(LOST_FILE).open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in lost)
    write_text(path, "".join(f"{json.dumps(row)}\n" for row in kept))
    return lost


def table(rows: list[dict[str, Any]]) -> str:
    """A line for each campaign and command, and the sums."""
    counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in rows:
        for key in ((row["campaign"], row["command"]), (row["campaign"], "all"), ("all", "all")):
            lost = bool(row["problems"])
            counts[key].update(
                tried=1, fired=row["fired"], survived=row["fired"] and not lost, lost=lost
            )
    columns = ("tried", "fired", "survived", "lost")
    lines = [f"{'campaign':<16}{'command':<24}" + "".join(f"{column:>10}" for column in columns)]
    for key, count in sorted(counts.items()):
        lines.append(
            f"{key[0]:<16}{key[1]:<24}" + "".join(f"{count[column]:>10,}" for column in columns)
        )
    return "\n".join(lines)


def _processor_time() -> float:
    """Seconds, with those of processes that have ended."""
    return sum(os.times()[:4])


def _key(row: dict[str, Any]) -> str:
    return hashlib.sha256(
        json.dumps([row["campaign"], row["command"], row["fault"], row["seed"]]).encode()
    ).hexdigest()


def _read_trials(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


if __name__ == "__main__":
    main()

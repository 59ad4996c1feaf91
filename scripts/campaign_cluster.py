"""Kill processes of a distributed training with SIGKILL at random moments, and compare its end with
an undisturbed training.

    python scripts/campaign_cluster.py -o build/campaign --kills 20 [--machines 2]

Trains a tiny model on invented data in four processes under `torchrun --max-restarts`. After each
kill, torchrun starts all of them again, and they continue from the last checkpoint. At the end, the
weights, the state of the optimizer and the journal must equal those of the undisturbed training,
bit for bit. With `--machines`, several torchruns divide the processes and meet at a port, as they
do on several machines; here, all of them run on this one. The folder keeps what is done: repeat the
command to continue after an interruption. It needs Linux, whose /proc names the processes.
"""

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from nmt.files import sha256_of, write_text

WORDS = [chr(ord("a") + i) * (1 + i % 3) for i in range(20)]
KILLS_FILE = "kills.jsonl"
CONFIG = """\
name: campaign
data:
  prepared: {folder}/prepared
  source: {{format: tsv, path: {folder}/pairs.tsv, columns: {{en: 1, de: 2}}}}
  split: {{dev: 20, test: 20}}
  workers: 1
tokenizer: {{kind: words}}
model:
  embedding_size: 16
  encoder: {{hidden_size: 16}}
  decoder: {{hidden_size: 16}}
  dropout: 0.3
training:
  epochs: 1000
  max_steps: {steps}
  batch: {{size: 4}}
  validate_every: {validate_every}
  validation_pairs: 5
  patience: 1000
  log_every: 5
  checkpoint_minutes: 0.02
  moving_average: 0.9
  teacher_forcing: {{start: 0.8}}
"""


def main() -> int:
    """Run the campaign, or what is left of it; 1 if the end of the disturbed training differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("build/campaign"), help="folder to write"
    )
    parser.add_argument("--kills", type=int, default=20, help="processes to kill")
    parser.add_argument("--steps", type=int, default=600, help="updates of each training")
    parser.add_argument("--processes", type=int, default=4, help="of all machines together")
    parser.add_argument(
        "--machines",
        type=int,
        default=1,
        help="torchruns that divide the processes; must divide their number",
    )
    parser.add_argument(
        "--pause",
        type=float,
        default=1.0,
        help="kill at most this many seconds after the next progress",
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="of the moments and of the processes to kill"
    )
    options = parser.parse_args()
    folder = options.output.resolve()
    config = prepare(folder, options.steps)
    if subprocess.run(
        [*torchrun(config, options.processes), "-o", str(folder / "whole")], check=False
    ).returncode:
        return 1
    command = [
        *torchrun(config, options.processes, options.machines, options.kills + 10),
        "-o",
        str(folder / "killed"),
    ]
    if not disturb(
        [command] * options.machines,
        folder,
        options.kills,
        options.pause,
        random.Random(options.seed),
    ):
        return 1
    differences = compare(folder / "whole", folder / "killed")
    kills = read_kills(folder)
    summary = {
        "processes": options.processes,
        "machines": options.machines,
        "steps": options.steps,
        "kills": len(kills),
        "differences": differences,
    }
    write_text(folder / "result.json", f"{json.dumps({**summary, 'killed': kills}, indent=2)}\n")
    print(json.dumps(summary))
    return 1 if differences or len(kills) < options.kills else 0


def prepare(folder: Path, steps: int) -> Path:
    """Write the data and the configuration, if they are not there, and prepare; returns the
    configuration.
    """
    config = folder / "config.yaml"
    if not (folder / "prepared").exists():
        folder.mkdir(parents=True, exist_ok=True)
        generator = random.Random(1)
        sources = {tuple(generator.choices(WORDS, k=generator.randint(2, 8))) for _ in range(400)}
        lines = (
            f"{' '.join(source)}\t{' '.join(reversed(source)).upper()}\n"
            for source in sorted(sources)
        )
        write_text(folder / "pairs.tsv", "".join(lines))
        write_text(
            config, CONFIG.format(folder=folder, steps=steps, validate_every=max(1, steps // 6))
        )
        subprocess.run(
            [sys.executable, "-m", "nmt", "prepare", "-q", "-c", str(config)], check=True
        )
    return config


def torchrun(config: Path, processes: int, machines: int = 1, restarts: int = 0) -> list[str]:
    """The command that trains, without the run folder; to be started once for each machine."""
    launcher = [
        f"--nproc-per-node={processes // machines}",
        f"--max-restarts={restarts}",
        "--monitor-interval=0.1",
    ]
    if machines == 1:
        launcher += ["--standalone"]
    else:
        with socket.create_server(("localhost", 0)) as server:
            port = server.getsockname()[1]
        launcher += [
            f"--nnodes={machines}",
            "--rdzv-backend=c10d",
            "--rdzv-id=campaign",
            f"--rdzv-endpoint=localhost:{port}",
        ]
    train = ["-m", "nmt", "train", "-q", "-c", str(config), "--resume", "--device", "cpu"]
    return [sys.executable, "-m", "torch.distributed.run", *launcher, *train]


def disturb(
    commands: list[list[str]], folder: Path, kills: int, pause: float, generator: random.Random
) -> bool:
    """Train while processes are killed, until `kills` of them are; whether the training ends
    well.
    """
    variables = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }  # see docs/gpu.md
    with (folder / "log.txt").open("a") as log:
        launchers = [
            subprocess.Popen(command, stdout=log, stderr=log, env=variables) for command in commands
        ]
        try:
            killed_at = 0
            while (
                all(launcher.poll() is None for launcher in launchers)
                and len(read_kills(folder)) < kills
            ):
                time.sleep(0.05)
                # Not before the training has come further than at the last kill: else it would
                # never end.
                if reached(folder / "killed") <= killed_at or not (
                    workers := worker_ids(launchers)
                ):
                    continue
                time.sleep(generator.uniform(0, pause))
                rank = generator.choice(sorted(workers))
                step = reached(folder / "killed")
                try:
                    os.kill(workers[rank], signal.SIGKILL)
                except ProcessLookupError:
                    continue
                killed_at = step
                with (folder / KILLS_FILE).open("a") as file:
                    file.write(json.dumps({"rank": rank, "step": step}) + "\n")
                print(
                    f"kill {len(read_kills(folder))}: process {rank + 1}, at step {step} or later",
                    flush=True,
                )
                wait_until_gone(workers[rank])
            return all(launcher.wait() == 0 for launcher in launchers)
        finally:
            for launcher in launchers:
                if launcher.poll() is None:
                    launcher.terminate()
                    launcher.wait()


def read_kills(folder: Path) -> list[dict[str, Any]]:
    """The kills so far, by all calls together."""
    path = folder / KILLS_FILE
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def reached(run: Path) -> int:
    """The last step in the journal of a run, whose last line may be incomplete."""
    path = run / "journal.jsonl"
    lines = (
        path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1] if path.exists() else []
    )
    return max((json.loads(line)["step"] for line in lines), default=0)


def worker_ids(launchers: Sequence[subprocess.Popen[bytes]]) -> dict[int, int]:
    """The process id of each rank that the torchruns have started; empty if one has just ended."""
    workers = {}
    folders = chain.from_iterable(
        Path(f"/proc/{launcher.pid}/task").glob("*/children") for launcher in launchers
    )
    for children in folders:
        for child in children.read_text().split():
            try:
                variables = (
                    Path(f"/proc/{child}/environ").read_bytes().decode(errors="replace").split("\0")
                )
            except OSError:  # it has just ended
                return {}
            ranks = [
                int(value.removeprefix("RANK=")) for value in variables if value.startswith("RANK=")
            ]
            workers.update(dict.fromkeys(ranks, int(child)))
    return workers


def wait_until_gone(process: int) -> None:
    """Wait until torchrun has noticed the end of a process."""
    while Path(f"/proc/{process}").exists():
        time.sleep(0.05)


def compare(whole: Path, killed: Path) -> list[str]:
    """What differs between the ends of two trainings; the journal without what the clock says."""
    differences = [
        name
        for name in ("last.json", "best.json")
        if checkpoint_of(whole, name) != checkpoint_of(killed, name)
    ]
    last = checkpoint_of(whole, "last.json")
    for name in ("model.safetensors", "raw.safetensors", "optimizer.safetensors"):
        paths = [run / "checkpoints" / last / name for run in (whole, killed)]
        if not all(path.exists() for path in paths) or sha256_of(paths[0]) != sha256_of(paths[1]):
            differences.append(name)
    if events(whole) != events(killed):
        differences.append("journal.jsonl")
    return differences


def checkpoint_of(run: Path, pointer: str) -> str:
    """The checkpoint that `last.json` or `best.json` names."""
    return str(json.loads((run / "checkpoints" / pointer).read_text())["checkpoint"])


def events(run: Path) -> list[dict[str, Any]]:
    """The journal of a run without what the clock says."""
    lines = (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        {key: value for key, value in json.loads(line).items() if "second" not in key}
        for line in lines
    ]


if __name__ == "__main__":
    sys.exit(main())

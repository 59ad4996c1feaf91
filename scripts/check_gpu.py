"""Check everything that only a GPU can show, in one call of under nine minutes; writes one JSON
file.

    python scripts/check_gpu.py [--device cuda] [--small] [--minutes 8.5] [-o check-gpu.json]

It runs the jobs of scripts/gpu_jobs.py, each in a process of its own, so that a failure of
one harms no other:

- the tests that need a GPU;
- `nmt prepare`, `train` and `evaluate`, with all parts of a model for Tatoeba;
- equality with the CPU: loss, gradient and translations of the same weights, in float32, TF32 and
bfloat16;
- training speed of model R (scripts/peers/model-r.yaml) and of a large model (4 layers of 1,024
  units, 32,000 words) in each precision; the share of time in which kernels run, and the share of
  the kernels of cuBLAS and cuDNN;
- decoders that run step by step (input feeding, Bahdanau): as they are, and as a CUDA graph;
- search with batches of 64 and 512 sentences and beams of 1 and 5;
- the largest batch that fits into memory.

The file is written again after each job. A job that fails or takes too long leaves its reason
there, and the exit status is 1. All data is random. With --small, on a GPU or a CPU, tiny sizes
show in about a minute that the script itself works.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from nmt.files import write_text
from scripts.gpu_jobs import JOBS, ROOT, can_run

JOB_SECONDS = 150  # at most, for each job


def run_job(name: str, device: str, *, small: bool, seconds: float) -> dict[str, Any]:
    """The figures of one job; `error` says why there are none, `seconds` how long it took."""
    command = [
        sys.executable,
        str(ROOT / "scripts" / "gpu_jobs.py"),
        name,
        device,
        *(["--small"] if small else []),
    ]
    start = time.monotonic()
    try:
        process = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"took more than {seconds:.0f} s", "seconds": seconds}
    lines = (
        process.stdout if process.returncode == 0 else process.stderr
    ).strip().splitlines() or ["no output"]
    figures = (
        json.loads(lines[-1])
        if process.returncode == 0
        else {"error": lines[-1], "output": lines[-30:]}
    )
    return {**figures, "seconds": time.monotonic() - start}


def summarize(results: dict[str, dict[str, Any]]) -> list[str]:
    """A line for each job."""
    lines = []
    for name, figures in results.items():
        if "error" in figures:
            text = f"failed: {figures['error']}"
        elif "tokens_per_second" in figures:
            text = (
                f"{figures['tokens_per_second']:,.0f} tokens/s; kernels "
                f"{figures['kernels_of_time']:.0%} of the time, library "
                f"{figures['library_of_time']:.0%}"
            )
        elif "ms" in figures:
            text = f"{figures['ms']:.1f} ms; kernels {figures['kernels_of_time']:.0%} of the time"
        else:
            text = json.dumps({key: value for key, value in figures.items() if key != "seconds"})
        lines.append(f"{name:<36}{text}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cuda", "cpu")
    )
    parser.add_argument("--small", action="store_true", help="tiny sizes")
    parser.add_argument(
        "--minutes",
        type=float,
        default=8.5,
        help="start no job after this time, and stop the current one",
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("check-gpu.json"))
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch finds no GPU here; use --device cpu --small")
    if arguments.device == "cpu" and not arguments.small:
        parser.error("the full sizes are for a GPU; use --device cpu --small")

    end = time.monotonic() + 60 * arguments.minutes
    results: dict[str, dict[str, Any]] = {}
    for name in JOBS:
        if not can_run(name, torch.device(arguments.device)):
            continue
        seconds = min(JOB_SECONDS, end - time.monotonic())
        if seconds <= 0:
            results[name] = {"error": f"no time left of {arguments.minutes:g} minutes"}
        else:
            results[name] = run_job(name, arguments.device, small=arguments.small, seconds=seconds)
        print(summarize({"device": results["device"], name: results[name]})[-1], flush=True)
        write_text(arguments.output, json.dumps(results, indent=2) + "\n")
    return 1 if any("error" in figures for figures in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

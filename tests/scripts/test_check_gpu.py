"""The check of GPUs, in its small form on the CPU: each job gives its figures, and the script keeps
what failed.
"""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.device import supports_mixed_precision
from scripts import check_gpu, gpu_jobs
from scripts.gpu_jobs import JOBS, SMALL, can_run

CPU = torch.device("cpu")


def numbers(figures: object) -> list[float]:
    if isinstance(figures, dict):
        return [number for value in figures.values() for number in numbers(value)]
    return [figures] if isinstance(figures, int | float) else []


@pytest.fixture(autouse=True)
def precision() -> Any:
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    yield
    torch.set_float32_matmul_precision(before[0])
    torch.backends.cudnn.allow_tf32 = before[1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of torch's compiler and profiler
@pytest.mark.parametrize("job", [name for name in JOBS if can_run(name, CPU) and name != "tests"])
def test_job_on_the_cpu(job: str) -> None:
    figures = JOBS[job](CPU, SMALL)
    json.dumps(figures)
    assert numbers(figures)
    assert all(math.isfinite(number) for number in numbers(figures))
    if job.startswith("training"):
        assert figures["updates"] == SMALL.updates
        assert 0 < figures["library_of_time"] <= figures["kernels_of_time"]
    if job.startswith("equality"):
        for system in figures.values():
            assert system["equal_translations"] == 1
            assert system["float32"]["gradient"] < 1e-5
            if supports_mixed_precision(CPU):
                assert 1e-5 < system["bfloat16"]["gradient"] < 0.1
    if job.startswith("decoding"):
        assert len(figures) == 4  # two batch sizes, two beams


@pytest.mark.parametrize(("mixed", "left_out"), [(False, {"bfloat16"}), (True, set())])
def test_leaves_out_jobs_that_the_device_cannot_run(
    monkeypatch: pytest.MonkeyPatch, mixed: bool, left_out: set[str]
) -> None:
    monkeypatch.setattr("scripts.gpu_jobs.supports_mixed_precision", lambda _: mixed)
    names = {name.split(", ")[-1] for name in JOBS if not can_run(name, CPU)}
    assert names == {"graph", "batch size"} | left_out


@pytest.mark.slow
def test_a_job_in_its_own_process() -> None:
    figures = check_gpu.run_job("device", "cpu", small=True, seconds=100)
    assert set(figures["rates"]) == {"float32", "tf32", "bfloat16"}
    assert (
        check_gpu.run_job("device", "cpu", small=True, seconds=0.01)["error"]
        == "took more than 0 s"
    )
    assert (
        "KeyError: 'devise'" in check_gpu.run_job("devise", "cpu", small=True, seconds=100)["error"]
    )


def test_failing_tests_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = subprocess.CompletedProcess((), 1, "1 failed in 0.1s\n", "")
    monkeypatch.setattr("scripts.gpu_jobs.subprocess.run", lambda *_args, **_options: ended)
    with pytest.raises(SystemExit, match=r"pytest: 1 failed in 0\.1s"):
        gpu_jobs.run_tests(CPU, SMALL)


def test_keeps_the_figures_of_all_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results: dict[str, dict[str, Any]] = {
        "device": {"rates": {"float32": 2e9}},
        "training, large, float32": {
            "tokens_per_second": 1234.5,
            "kernels_of_time": 0.9,
            "library_of_time": 0.8,
        },
        "step loop, bahdanau, eager": {"ms": 12.34, "kernels_of_time": 0.5},
        "tests": {"error": "broken"},
        "batch size": {},
    }
    monkeypatch.setattr(check_gpu, "JOBS", results)
    monkeypatch.setattr(check_gpu, "run_job", lambda name, *_args, **_options: results[name])
    output = tmp_path / "check.json"
    monkeypatch.setattr(
        sys, "argv", ["check_gpu.py", "--device", "cpu", "--small", "-o", str(output)]
    )
    assert check_gpu.main() == 1
    assert json.loads(output.read_text(encoding="utf-8")) == {
        name: results[name] for name in results if name != "batch size"
    }
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split(maxsplit=3)[3] == "1,234 tokens/s; kernels 90% of the time, library 80%"
    assert lines[2].endswith("12.3 ms; kernels 50% of the time")
    assert lines[3].endswith("failed: broken")


def test_full_sizes_need_a_gpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["check_gpu.py", "--device", "cpu"])
    with pytest.raises(SystemExit) as exit_info:
        check_gpu.main()
    assert exit_info.value.code == 2
    assert "the full sizes are for a GPU; use --device cpu --small" in capsys.readouterr().err

"""Devices and what they support. GPU code is tested without a GPU: the calls to torch are recorded
or simulated.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from nmt.cores import usable_cores
from nmt.data.batches import build_batch, send
from nmt.device import pick_device, set_up_device, supports_mixed_precision
from nmt.errors import ConfigError
from nmt.training.distributed import local_gpu

GPU = torch.device("cuda", 0)


@pytest.fixture
def precision() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


def test_set_up_device_allows_tf32_on_a_gpu_only(
    precision: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert set_up_device("cpu") == torch.device("cpu")
    assert pick_device("auto") == torch.device("cuda")
    assert torch.get_float32_matmul_precision() == "highest"
    assert set_up_device("auto") == torch.device("cuda")
    assert torch.get_float32_matmul_precision() == "high"


def test_each_process_has_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert local_gpu(torch.device("cpu")) == torch.device("cpu")
    assert chosen == []
    assert local_gpu(torch.device("cuda")) == torch.device("cuda", 0)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert local_gpu(torch.device("cuda")) == torch.device("cuda", 1)
    assert chosen == [0, 1]
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(
        ConfigError,
        match="process 3 of this machine has no GPU: the machine has 2; start one process",
    ):
        local_gpu(torch.device("cuda"))


def test_copies_to_a_gpu_are_pinned_and_asynchronous(monkeypatch: pytest.MonkeyPatch) -> None:
    pinned: list[Tensor] = []
    sent: list[tuple[Tensor, torch.device, bool]] = []

    def pin(tensor: Tensor) -> Tensor:
        pinned.append(tensor.clone())
        return pinned[-1]

    def to(tensor: Tensor, device: torch.device, *, non_blocking: bool = False) -> Tensor:
        sent.append((tensor, device, non_blocking))
        return tensor

    batch = build_batch([[5, 6], [7]], [[8], [9, 10]])
    monkeypatch.setattr(Tensor, "pin_memory", pin)
    monkeypatch.setattr(Tensor, "to", to)
    moved = batch.to(GPU)
    assert moved.src_lengths is batch.src_lengths  # packing wants them on the CPU
    for name in ("src", "tgt_in", "tgt_out", "tgt_mask", "token_positions"):
        assert torch.equal(getattr(moved, name), getattr(batch, name))
        assert getattr(moved, name) is not getattr(batch, name)
    send(batch.src_lengths, GPU)
    assert len(sent) == 6
    for (tensor, device, non_blocking), source in zip(sent, pinned, strict=True):
        assert tensor is source
        assert (device, non_blocking) == (GPU, True)
    assert batch.to(torch.device("cpu")) is batch
    assert len(pinned) == 6


def test_a_cpu_needs_recurrent_layers_in_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    for supported in (False, True):
        monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: supported)  # noqa: B023
        names = ("cpu", "mps", "cuda")
        found = [supports_mixed_precision(torch.device(name)) for name in names]
        assert found == [supported, False, True]
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert not supports_mixed_precision(torch.device("cpu"))  # as on a Mac


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 4),
        ({"cpu.max": "max 100000\n"}, 4),
        ({"cpu.max": "250000 100000\n"}, 3),
        ({"cpu.max": "6400000 100000\n"}, 4),
        ({"quota": "-1\n", "period": "100000\n"}, 4),
        ({"quota": "50000\n", "period": "100000\n"}, 1),
    ],
)
def test_a_container_has_as_many_threads_as_its_time_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], cores: int
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    named = ((str(tmp_path / "cpu.max"),), (str(tmp_path / "quota"), str(tmp_path / "period")))
    monkeypatch.setattr("nmt.cores.QUOTA_FILES", named)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    assert usable_cores() == cores
    chosen: list[int] = []
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    set_up_device("cpu")
    monkeypatch.setenv("OMP_NUM_THREADS", "4")  # the user's choice stays
    set_up_device("cpu")
    assert chosen == [cores]

"""What the devices support."""

import pytest
import torch

from nmt import device
from nmt.device import set_up_device, supports_mixed_precision

AVX512, AMX = "_is_avx512_bf16_supported", "_is_amx_tile_supported"


@pytest.mark.parametrize(("avx512", "amx"), [(True, False), (False, True), (False, False)])
def test_a_cpu_needs_instructions_for_bfloat16(
    monkeypatch: pytest.MonkeyPatch, avx512: bool, amx: bool
) -> None:
    monkeypatch.setattr(torch.cpu, AVX512, lambda: avx512, raising=False)
    monkeypatch.setattr(torch.cpu, AMX, lambda: amx, raising=False)
    assert supports_mixed_precision(torch.device("cpu")) is (avx512 or amx)


def test_a_torch_that_cannot_tell_counts_as_without(monkeypatch: pytest.MonkeyPatch) -> None:
    for probe in (AVX512, AMX):
        monkeypatch.delattr(torch.cpu, probe, raising=False)
    assert not supports_mixed_precision(torch.device("cpu"))


def test_other_devices() -> None:
    assert supports_mixed_precision(torch.device("cuda"))
    assert not supports_mixed_precision(torch.device("mps"))


def test_a_device_is_refused_if_nearly_no_memory_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set_up_device("cpu").type == "cpu"
    monkeypatch.setattr(device, "MIN_MEMORY", 1 << 62)
    with pytest.raises(MemoryError):
        set_up_device("cpu")

"""Products in 8-bit integers, for translation on a CPU.

Each row of a matrix is divided by a scale of its own and rounded, once; what it is multiplied with is rounded at each product, with
one scale for all of it ("dynamic"). Sums are of 32 bits.
"""

import warnings
from typing import Any, Self

import torch
from torch import Tensor, nn

from nmt.errors import ConfigError


class Int8Linear(nn.Module):
    """y = x W^T + b.

    Args:
        rows: [O, I], 8-bit integers. scales: [O], so that W is rows * scales. bias: [O].
    """

    def __init__(self, rows: Tensor, scales: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.rows, self.scales, self.bias = rows, scales, torch.zeros_like(scales) if bias is None else bias
        self.packed = _pack(rows)

    @classmethod
    def of(cls, linear: nn.Linear) -> Self:
        """The nearest to a layer of floats."""
        bias: Tensor | None = linear.bias
        return cls(*round_rows(linear.weight.detach()), None if bias is None else bias.detach())

    def select(self, ids: Tensor) -> "Int8Linear":
        """The outputs `ids` alone, in that order."""
        return Int8Linear(self.rows[ids], self.scales[ids], self.bias[ids])

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., I] -> [..., O]."""
        sums: Tensor = torch.ops.quantized.linear_dynamic(inputs, self.packed, reduce_range=True)
        return torch.addcmul(self.bias, sums, self.scales, out=sums)


def round_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """[O, I] -> the same as 8-bit integers, and the scale [O] of each row."""
    scales = weight.abs().amax(1).clamp_min(torch.finfo(weight.dtype).tiny) / 127
    return (weight / scales.unsqueeze(1)).round().to(torch.int8), scales


def check_available(device: torch.device) -> None:
    """Raises: ConfigError if there is no arithmetic in 8-bit integers on this device, or in this build of torch."""
    if device.type != "cpu":
        raise ConfigError(f"decoding.precision: int8 computes on the CPU, not on {device.type}; use --device cpu, or float32")
    if torch.backends.quantized.engine == "none":
        raise ConfigError("decoding.precision: this build of torch cannot multiply 8-bit integers; set it to float32")
    with warnings.catch_warnings():  # torch says once that its quantised tensors will go: what stands here is then to be rewritten
        warnings.filterwarnings("ignore", message=r"torch\.quantize_per_tensor", category=UserWarning)
        _pack(torch.ones(1, 1, dtype=torch.int8))


def _pack(rows: Tensor) -> Any:
    # Without the scales: torch would read them one by one, which for a shortlist's matrix takes longer than all the rest.
    return torch.ops.quantized.linear_prepack(torch._make_per_tensor_quantized_tensor(rows, 1.0, 0), None)

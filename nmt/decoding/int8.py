"""Products in 8-bit integers, for translation on a CPU (dynamic quantization).

Each row of a weight matrix is divided by its own scale and rounded once; the inputs are rounded at
each product with one scale for all of them. Sums have 32 bits.
"""

import warnings
from functools import cache
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
        self.rows, self.scales = rows, scales
        self.bias = torch.zeros_like(scales) if bias is None else bias
        self.packed = _pack(rows)

    @classmethod
    def of(cls, linear: nn.Linear) -> Self:
        """The rounded form of a layer."""
        bias: Tensor | None = linear.bias
        return cls(*round_rows(linear.weight.detach()), None if bias is None else bias.detach())

    def select(self, ids: Tensor) -> "Int8Linear":
        """A layer with only the outputs `ids` [v], in that order."""
        return Int8Linear(self.rows[ids], self.scales[ids], self.bias[ids])

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., I] -> [..., O]."""
        sums = _multiply(inputs, self.packed)
        return torch.addcmul(self.bias, sums, self.scales, out=sums)


def round_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """[O, I] -> the rounded rows as 8-bit integers, and the scale [O] of each row."""
    scales = weight.abs().amax(1).clamp_min(torch.finfo(weight.dtype).tiny) / 127
    return (weight / scales.unsqueeze(1)).round().to(torch.int8), scales


def check_available(device: torch.device) -> None:
    """Raises: ConfigError if this device or this build of torch cannot multiply 8-bit integers."""
    if device.type != "cpu":
        raise ConfigError(
            f"decoding.precision: int8 computes on the CPU, not on {device.type}; use --device "
            "cpu, or float32"
        )
    if torch.backends.quantized.engine == "none" or not operators_work():
        raise ConfigError(
            "decoding.precision: this build of torch cannot multiply 8-bit integers; set it to "
            "float32"
        )


@cache
def operators_work() -> bool:
    """Whether this build of torch has the (partly private) operators, and they are correct."""
    rows = torch.tensor([[1, -127, 3], [127, 2, 0]], dtype=torch.int8)
    try:
        # torch warns once that its quantized tensors will be removed.
        with warnings.catch_warnings(action="ignore"), torch.inference_mode():
            product = _multiply(torch.eye(3), _pack(rows))
    except (AttributeError, RuntimeError, TypeError):
        return False
    return torch.allclose(product, rows.t().float(), atol=1)


def _pack(rows: Tensor) -> Any:
    # Without the scales: torch would read them one by one, which takes longer than everything else
    # for a shortlist's matrix.
    tensor = torch._make_per_tensor_quantized_tensor(rows, 1.0, 0)
    return torch.ops.quantized.linear_prepack(tensor, None)


def _multiply(inputs: Tensor, packed: Any) -> Tensor:
    sums: Tensor = torch.ops.quantized.linear_dynamic(inputs, packed, reduce_range=True)
    return sums

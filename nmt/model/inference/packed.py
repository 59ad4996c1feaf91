"""Products with a matrix that no longer changes, for translation on a CPU: oneDNN lays it out for the processor, once.

torch multiplies floats with MKL, which lays a matrix out anew at each product, and for whom a processor is not Intel's is slower.
"""

from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

ROWS = 64  # for so many the layout is chosen; it serves any number
ALIKE = 16  # rows are filled up to a multiple of so many: oneDNN keeps code and memory for each number that it has met


class PackedLinear(nn.Module):
    """y = x W^T + b, without gradients.

    Args:
        weight: [O, I], which may be shared. bias: [O], or None.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.detach(), requires_grad=False)
        self.bias = None if bias is None else nn.Parameter(bias.detach(), requires_grad=False)
        self.packed = _pack(self.weight)

    @classmethod
    def of(cls, linear: nn.Linear) -> Self:
        """The same as a layer of torch's."""
        return cls(linear.weight, linear.bias)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "packed": None}  # it can be neither copied nor written

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self.packed = _pack(self.weight)

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., I] -> [..., O]."""
        if self.packed is None:
            return functional.linear(inputs, self.weight, self.bias)
        rows = inputs.flatten(0, -2)
        extra = -len(rows) % ALIKE if len(rows) > ALIKE else 0
        padded = functional.pad(rows, (0, 0, 0, extra)) if extra else rows
        outputs: Tensor = torch.ops.mkldnn._linear_pointwise(padded, self.packed, self.bias, "none", [], "")
        return outputs[: len(rows)].view(*inputs.shape[:-1], -1)


def _pack(weight: Tensor) -> Tensor | None:
    """None where oneDNN is not, or does not multiply such numbers."""
    if weight.device.type != "cpu" or weight.dtype != torch.float32 or not torch.backends.mkldnn.is_available():
        return None
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, ROWS)
    return packed

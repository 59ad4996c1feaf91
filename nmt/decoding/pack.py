"""Linear layers with packed weights, for translation on a CPU; and copies of modules with some
parts replaced.

torch uses MKL for products of float32, which repacks the weight on every call and is slower on
processors not made by Intel; oneDNN packs it once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from functools import cache
from typing import Any, Self, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

# oneDNN chooses the packed layout for this number of input rows; the layout works for any number
LAYOUT_ROWS = 64
# inputs are padded to a multiple of this: oneDNN keeps code and memory for each number of rows it
# has seen
ROWS_MULTIPLE = 16

Module = TypeVar("Module", bound=nn.Module)
PackFn = Callable[[nn.Linear], nn.Module]


class InferenceLinear(nn.Module, ABC):
    """A linear layer in another form than torch's, without gradients."""

    @abstractmethod
    def forward(self, inputs: Tensor) -> Tensor:
        """[..., I] -> [..., O]."""

    @abstractmethod
    def select(self, ids: Tensor) -> nn.Module:
        """A linear layer with only the outputs `ids` [v], in that order."""


class PackedLinear(InferenceLinear):
    """y = x W^T + b in float32 with packed weights, without gradients; an ordinary product where
    oneDNN cannot be used.

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
        """The packed form of a layer."""
        return cls(linear.weight, linear.bias)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "packed": None}  # packed weights can be neither copied nor written

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self.packed = _pack(self.weight)

    def select(self, ids: Tensor) -> nn.Linear:
        # Not packed again: packing would take longer than the few products of a batch.
        assert self.bias is not None
        return linear_of(self.weight[ids], self.bias[ids])

    def forward(self, inputs: Tensor) -> Tensor:
        if self.packed is None:
            return functional.linear(inputs, self.weight, self.bias)
        rows = inputs.flatten(0, -2)
        extra = -len(rows) % ROWS_MULTIPLE if len(rows) > ROWS_MULTIPLE else 0
        padded = functional.pad(rows, (0, 0, 0, extra)) if extra else rows
        return _multiply(padded, self.packed, self.bias)[: len(rows)].view(*inputs.shape[:-1], -1)


def _pack(weight: Tensor) -> Tensor | None:
    """None if oneDNN cannot multiply by this weight."""
    usable = (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and torch.backends.mkldnn.is_available()
    )
    return _reorder(weight) if usable and operators_work() else None


def _reorder(weight: Tensor) -> Tensor:
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, LAYOUT_ROWS)
    return packed


def _multiply(rows: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    outputs: Tensor = torch.ops.mkldnn._linear_pointwise(rows, packed, bias, "none", [], "")
    return outputs


@cache
def operators_work() -> bool:
    """Whether this build of torch has the two private operators, and they multiply correctly."""
    weight = torch.linspace(-1, 1, 96).view(6, 16)
    rows = weight[:3] + 0.5
    try:
        with torch.inference_mode():
            product = _multiply(rows, _reorder(weight), None)
    except (AttributeError, RuntimeError, TypeError):
        return False
    return torch.allclose(product, rows @ weight.t(), atol=1e-4)


def replace_submodules(module: Module, **submodules: nn.Module) -> Module:
    """A copy of a module with other submodules under these names. It shares everything else with
    the original.
    """
    other = copy(module)
    other._modules = {**module._modules, **submodules}
    return other


def pack_linears(module: Module, pack: PackFn) -> Module:
    """A copy of a module with all linear layers within it packed. It shares everything else with
    the original.
    """
    children = module.named_children()
    packed = {
        name: pack(child) if isinstance(child, nn.Linear) else pack_linears(child, pack)
        for name, child in children
    }
    return replace_submodules(module, **packed) if packed else module


def linear_of(weight: Tensor, bias: Tensor) -> nn.Linear:
    """A layer with these weights [O, I] and [O], shared, and without gradients."""
    linear = nn.Linear.__new__(
        nn.Linear
    )  # nn.Linear() would draw weights first; torch's `skip_init` takes half a second to import
    nn.Module.__init__(linear)
    linear.out_features, linear.in_features = weight.shape
    linear.weight, linear.bias = (
        nn.Parameter(part.detach(), requires_grad=False) for part in (weight, bias)
    )
    return linear


class RestrictedEmbedding(nn.Module):
    """An embedding of only the words `ids` [v], numbered in that order."""

    def __init__(self, embedding: nn.Module, ids: Tensor) -> None:
        super().__init__()
        self.embedding, self.ids = embedding, ids

    def forward(self, ids: Tensor) -> Tensor:
        """[B] -> the rows of the whole embedding."""
        return self.embedding(self.ids[ids])  # type: ignore[no-any-return]


def select_outputs(linear: nn.Module, ids: Tensor) -> nn.Module:
    """A linear layer with only the outputs `ids` [v], in that order; the layer may be packed."""
    if isinstance(linear, nn.Linear):
        return linear_of(linear.weight[ids], linear.bias[ids])
    assert isinstance(linear, InferenceLinear)
    return linear.select(ids)

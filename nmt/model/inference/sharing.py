"""Modules that share what they are made of."""

from collections.abc import Callable
from copy import copy
from typing import TypeVar

from torch import Tensor, nn

Module = TypeVar("Module", bound=nn.Module)
LayOut = Callable[[nn.Linear], nn.Module]  # a linear layer as it is to be searched with


def with_parts(module: Module, **parts: nn.Module) -> Module:
    """The same module but for its `parts` of those names; all the rest is shared."""
    other = copy(module)
    other._modules = {**module._modules, **parts}
    return other


def linear_of(weight: Tensor, bias: Tensor) -> nn.Linear:
    """The layer with these weights [O, I] and [O], shared, and without gradients."""
    linear = nn.Linear.__new__(nn.Linear)  # its own way would draw weights first; torch's `skip_init` takes half a second to import
    nn.Module.__init__(linear)
    linear.out_features, linear.in_features = weight.shape
    linear.weight, linear.bias = (nn.Parameter(part.detach(), requires_grad=False) for part in (weight, bias))
    return linear


def laid_out(module: Module, lay_out: LayOut) -> Module:
    """The same module with the linear layers within laid out; all the rest is shared."""
    children = module.named_children()
    parts = {name: lay_out(child) if isinstance(child, nn.Linear) else laid_out(child, lay_out) for name, child in children}
    return with_parts(module, **parts) if parts else module

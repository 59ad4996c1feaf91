"""Modules that share what they are made of."""

from collections.abc import Callable
from copy import copy
from typing import TypeVar

from torch import nn

Module = TypeVar("Module", bound=nn.Module)
LayOut = Callable[[nn.Linear], nn.Module]  # a linear layer as it is to be searched with


def with_parts(module: Module, **parts: nn.Module) -> Module:
    """The same module but for its `parts` of those names; all the rest is shared."""
    other = copy(module)
    other._modules = {**module._modules, **parts}
    return other


def laid_out(module: Module, lay_out: LayOut) -> Module:
    """The same module with the linear layers within laid out; all the rest is shared."""
    children = module.named_children()
    parts = {name: lay_out(child) if isinstance(child, nn.Linear) else laid_out(child, lay_out) for name, child in children}
    return with_parts(module, **parts) if parts else module

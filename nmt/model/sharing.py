"""Modules that share what they are made of."""

from copy import copy
from typing import TypeVar

from torch import nn

Module = TypeVar("Module", bound=nn.Module)


def with_parts(module: Module, **parts: nn.Module) -> Module:
    """The same module but for its `parts` of those names; all the rest is shared."""
    other = copy(module)
    other._modules = {**module._modules, **parts}
    return other

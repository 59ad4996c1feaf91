"""Progress bars on stderr: at a terminal and in notebooks."""

import sys
from importlib.util import find_spec
from typing import Any

from tqdm import tqdm


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


def is_watched() -> bool:
    """Whether a person sees stderr: it is a terminal or the output of a notebook."""
    return sys.stderr.isatty() or in_notebook()


def progress_bar(**options: Any) -> "tqdm[Any]":
    """A bar of tqdm, with its options. A notebook that has ipywidgets shows it as a widget, others
    as text.
    """
    if in_notebook() and find_spec("ipywidgets") is not None:
        from tqdm.notebook import tqdm as widget

        return widget(**options)
    return tqdm(**options)

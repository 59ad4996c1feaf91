"""Neural machine translation with recurrent networks and attention.

    import nmt
    translator = nmt.load("runs/sample")

The four commands are modules of the same names, each with a `run`: `nmt.prepare`, `nmt.train`, `nmt.translate`, `nmt.evaluate`.
Importing `nmt` itself costs nothing: torch is imported with the first model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike

    from nmt.decoding.translator import Translator

__all__ = ["__version__", "load"]

__version__ = "0.1.0"


def load(run: str | PathLike[str]) -> Translator:
    """The best model of the run in folder `run`, ready to translate.

    Raises:
        CheckpointError: the folder holds no run, or one that cannot be read.
    """
    from pathlib import Path

    from nmt.runs import load_translator

    return load_translator(Path(run))

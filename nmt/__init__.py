"""Neural machine translation with recurrent networks and attention.

    import nmt
    translator = nmt.load("runs/sample")

Each command is a module of `nmt.commands`, with a `run`.
Importing `nmt` itself costs nothing: torch is imported with the first model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from nmt.decoding.translator import Translator

__all__ = ["__version__", "load"]

__version__ = "0.1.0"


def load(*runs: str | PathLike[str], overrides: Sequence[str] = ()) -> Translator:
    """The best model of the run in a folder (default: of the run trained last), ready to translate; several are an ensemble.

    Args:
        runs: folders of runs, or of single checkpoints of theirs.
        overrides: `decoding.key=value`, in place of what the run is configured to do.

    Raises:
        CheckpointError: a folder holds no run, or one that cannot be read; or the vocabularies of an ensemble differ.
        ConfigError: an override is not of decoding, or not possible.
    """
    from pathlib import Path

    from nmt.run.folder import load_translator

    return load_translator([Path(run) for run in runs] or None, overrides=overrides)

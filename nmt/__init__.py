"""Neural machine translation with recurrent networks and attention.

    import nmt
    nmt.prepare("configs/sample.yaml")
    run = nmt.train("configs/sample.yaml")
    translator = nmt.load(run)
    print(translator.translate(["The dog sleeps."])[0].text)

Importing `nmt` is cheap: each function imports what it needs, such as torch, when it is called.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike
    from typing import Any

    from nmt.config.parts import DeviceName
    from nmt.config.schema import Config
    from nmt.decoding.translator import Translator
    from nmt.training.record import Event

__all__ = ["__version__", "load", "prepare", "train"]

__version__ = "0.3.0"


def prepare(
    config: Config | str | PathLike[str],
    *,
    overrides: Sequence[str] = (),
    folder: str | PathLike[str] | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Prepare the data of a configuration, and return the manifest; the same as `nmt prepare`.

    Args:
        config: a configuration, or the path of its YAML file.
        overrides: `key.path=value`, which replace values of the configuration.
        folder: the prepared folder; default: that of the configuration.
        overwrite: replace other data in the folder.

    Raises:
        ConfigError: the configuration is invalid.
        DataError: the input or the folder cannot be used.
    """
    from nmt.commands import prepare as command
    from nmt.config.load import load_config

    return command.run(
        load_config(config, overrides),
        None if folder is None else Path(folder),
        overwrite=overwrite,
    )


def train(
    config: Config | str | PathLike[str],
    *,
    overrides: Sequence[str] = (),
    folder: str | PathLike[str] | None = None,
    resume: bool = False,
    device: DeviceName = "auto",
    quiet: bool = False,
    listen: Callable[[Event], None] | None = None,
) -> Path:
    """Train a model on its prepared data, and return the run folder; the same as `nmt train`.

    Args:
        config: a configuration, or the path of its YAML file.
        overrides: `key.path=value`, which replace values of the configuration.
        folder: the run folder; default: runs/<name>.
        resume: continue from the last checkpoint, or start if there is none.
        device: where to compute.
        quiet: print only warnings.
        listen: gets what happens, see `nmt.training.record`, so that a notebook can plot it. If it
            raises `nmt.errors.StopTraining`, the training ends after the update and saves it;
            `resume` continues it exactly. Its time is no training time.

    Raises:
        ConfigError: the configuration is invalid, or the folder already holds another run.
        DataError: the data is not prepared, or with another configuration.
        CheckpointError: the run to continue or to start from cannot be read.
        TrainingError: the training was interrupted or failed.
    """
    from nmt.commands import train as command
    from nmt.config.load import load_config

    return command.run(
        load_config(config, overrides),
        None if folder is None else Path(folder),
        resume=resume,
        device=device,
        quiet=quiet,
        listen=listen,
    )


def load(*runs: str | PathLike[str], overrides: Sequence[str] = ()) -> Translator:
    """The best model of a run, ready to translate; several runs form an ensemble.

    Args:
        runs: run folders, folders of single checkpoints, or bundles; default: the newest run.
        overrides: `decoding.key=value`, which replace values of the run's configuration.

    Raises:
        CheckpointError: a folder contains no run, or an unreadable one; or the vocabularies of an
            ensemble differ.
        ConfigError: an override is invalid, or its key is not in the section decoding.
    """
    from nmt.run.load import load_translator

    return load_translator([Path(run) for run in runs] or None, overrides=overrides)

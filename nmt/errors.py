"""Errors (and warnings) that a user can cause and fix. The command line prints an error's text without a traceback; status 1."""

import sys


class NmtError(Exception):
    """Base of all these errors. The text says what is wrong, where, and what to do."""


class NmtWarning(UserWarning):
    """Something that the user should look at, but that stops nothing. The command line prints its text as one line."""


class ConfigError(NmtError):
    """The configuration, or an option of a command, is invalid."""


class DataError(NmtError):
    """Input data, or a prepared data folder, is missing or unusable."""


class CheckpointError(NmtError):
    """A run folder or a checkpoint is missing or unusable."""


class NonFiniteError(NmtError):
    """The results of a model are not finite numbers."""


class TrainingError(NmtError):
    """The training cannot continue."""


def lacks_memory(error: Exception) -> bool:
    """Whether `error` means that the memory of the computer or the GPU is too small.

    torch has an exception type only for GPU memory. For other memory it raises a RuntimeError, recognized here by its text.
    """
    torch = sys.modules.get("torch")  # not imported here, which would slow down every start of the command line
    if isinstance(error, MemoryError if torch is None else (MemoryError, torch.OutOfMemoryError)):
        return True
    texts = ("out of memory", "can't allocate memory", "not enough memory", "ALLOC_FAILED", "bad_alloc", "can't start new thread")
    return isinstance(error, RuntimeError) and any(text in str(error) for text in texts)

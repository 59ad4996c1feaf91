"""Faults that a user can cause. The command line prints their text alone, without a traceback, and exits with status 1."""


class NmtError(Exception):
    """Base of every fault that is the user's to mend: the text says what is wrong, where, and what to do."""


class ConfigError(NmtError):
    """A configuration that cannot be used."""


class DataError(NmtError):
    """Input data, or a prepared folder, that cannot be used."""


class CheckpointError(NmtError):
    """A run or a checkpoint that cannot be used."""


class TrainingError(NmtError):
    """A training that cannot go on."""


def lacks_memory(error: Exception) -> bool:
    """Whether a computer's, or a GPU's, memory was too small; most of what torch raises then is told by its text alone."""
    signs = ("out of memory", "can't allocate memory", "not enough memory", "ALLOC_FAILED")
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(sign in str(error) for sign in signs))

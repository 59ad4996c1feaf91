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

"""Errors and warnings that a user can cause and fix: the command line prints only their text."""

import errno
import re
import sys

# Characters that move the cursor, color or reorder text, or are half a character. Further lines of
# an error begin with two spaces.
_CONTROL = re.compile(
    "\n(?!  )|[\0-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    """A text with escapes for control characters and line breaks, which user data may have."""
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)


class NmtError(Exception):
    """Base of all these errors. The text says what is wrong, where, and what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(printable(text))


class StopTraining(Exception):  # noqa: N818
    """For a listener of a training to raise: the training ends after the update, and saves it."""


class NmtWarning(UserWarning):
    """Something that the user should look at, but that stops nothing."""


class ConfigError(NmtError):
    """The configuration, or an option of a command, is invalid."""


class DataError(NmtError):
    """Input data, or a prepared data folder, is missing or unusable."""


class FormatError(DataError):
    """A file is not what its format asks for: "line 3: ..."."""


class TextError(DataError):
    """One of several texts is unusable.

    Attributes:
        index: of the text, from 0. reason: what is wrong with it, and what to do.
    """

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index, self.reason = index, reason

    def __str__(self) -> str:
        return f"text {self.index + 1} {super().__str__()}"


class TooLargeError(TextError):
    """A single text does not fit into memory."""

    def __init__(self, index: int, advice: str) -> None:
        super().__init__(index, f"does not fit into memory, even alone; {advice}")


class CheckpointError(NmtError):
    """A run folder or a checkpoint is missing or unusable."""


class NonFiniteError(NmtError):
    """The results of a model are not finite numbers."""


class TrainingError(NmtError):
    """The training cannot continue."""


def lacks_memory(error: BaseException) -> bool:
    """Whether `error` means that the memory of the computer or the GPU is too small.

    torch has an exception type only for GPU memory. For other memory it raises a RuntimeError,
    recognized here by its text, as are errors of safetensors and sentencepiece.
    """
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    # torch is not imported here: that would slow down every start of the command line.
    torch = sys.modules.get("torch")
    if isinstance(error, MemoryError if torch is None else (MemoryError, torch.OutOfMemoryError)):
        return True
    if not isinstance(error, RuntimeError) and type(error).__name__ != "SafetensorError":
        return False
    texts = (
        "out of memory",
        "can't allocate memory",
        "Cannot allocate memory",
        "not enough memory",
        "ALLOC_FAILED",
        "bad_alloc",
        "can't start new thread",
    )
    # All that oneDNN says, with which torch multiplies matrices. More text after it has another
    # cause.
    whole_texts = ("could not create a primitive", "could not execute a primitive")
    return str(error) in whole_texts or any(text in str(error) for text in texts)


def first_problem(error: Exception) -> str:
    """What is wrong with a file; of what pydantic found, the first key, and what is wrong."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    problem = error.errors()[0]
    return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"


def first_line(error: Exception) -> str:
    """What an error of another library says, without what follows."""
    return str(error).strip().split("\n")[0]


def in_one_line(text: object) -> str:
    """What an error of another library says, as one line."""
    return " ".join(str(text).split())


def pass_on_lack_of_memory(error: BaseException) -> None:
    """For code that would call a file damaged. Raises: MemoryError if memory was too small."""
    if lacks_memory(error):
        raise MemoryError(str(error)) from None

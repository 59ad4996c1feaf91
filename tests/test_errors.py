"""The text of an error, which errors mean that memory is too small, and how commands end."""

import signal
import subprocess
import sys

import pytest

from nmt.cli import errors_in_one_line
from nmt.errors import DataError, lacks_memory


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb", r"a\nb"),
        ("two problems\n  a\n  b", "two problems\n  a\n  b"),
        ("\x1b[2Jx\r\x9b", r"\x1b[2Jx\r\x9b"),
        ("abc\u202edef\u2028\udc8b", r"abc\u202edef\u2028\udc8b"),
        ("Straße ￭ „x“ \\n", "Straße ￭ „x“ \\n"),
    ],
)
def test_data_cannot_forge_lines_or_move_the_cursor(text: str, shown: str) -> None:
    error = DataError(text)
    assert str(error) == shown
    assert str(DataError(str(error))) == shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("could not execute a primitive", True),
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", True),
        ("[enforce fail] . DefaultCPUAllocator: not enough memory", True),
        # The processor lacks instructions, or a model has a wrong shape:
        ("could not create a primitive descriptor for a matmul primitive", False),
        ("mat1 and mat2 shapes cannot be multiplied", False),
    ],
)
def test_errors_of_torch_that_mean_a_lack_of_memory(text: str, expected: bool) -> None:
    assert lacks_memory(RuntimeError(text)) == expected


# --- How commands end


def test_a_second_ctrl_c_does_not_disturb_the_exit_of_the_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as caught, errors_in_one_line():
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)
    assert (caught.value.code, capsys.readouterr().err) == (130, "nmt: interrupted\n")


def test_ctrl_c_after_a_command_has_ended_does_not_disturb_the_exit() -> None:
    code = """
import atexit, signal, sys
from nmt.cli import main
atexit.register(signal.raise_signal, signal.SIGINT)
sys.argv = ["nmt", "--help"]
main()
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")

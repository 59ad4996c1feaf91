"""How commands end."""

import signal
import subprocess
import sys

import pytest

from nmt.cli import errors_in_one_line


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

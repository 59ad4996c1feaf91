"""How commands end."""

import signal

import pytest

from nmt.commands.group import fail_on_interrupt


def test_a_second_ctrl_c_does_not_disturb_the_exit_of_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) as caught:
            fail_on_interrupt()
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (caught.value.code, capsys.readouterr().err) == (130, "nmt: interrupted\n")

"""Progress bars at terminals, in notebooks and in pipes."""

import sys
from types import SimpleNamespace

import pytest
import tqdm.notebook

from nmt import bars


def pretend_notebook(monkeypatch: pytest.MonkeyPatch, kernel: object) -> None:
    module = SimpleNamespace(
        get_ipython=lambda: SimpleNamespace(kernel=kernel) if kernel else SimpleNamespace()
    )
    monkeypatch.setitem(sys.modules, "IPython", module)


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_terminal(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    assert (bars.in_notebook(), bars.is_watched()) == (False, is_terminal)
    assert type(bars.progress_bar(disable=True)) is tqdm.tqdm


@pytest.mark.parametrize("has_widgets", [False, True])
def test_a_notebook(
    has_widgets: bool, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    pretend_notebook(monkeypatch, "kernel")
    monkeypatch.setattr(
        bars, "find_spec", lambda name: object() if has_widgets and name == "ipywidgets" else None
    )
    assert (bars.in_notebook(), bars.is_watched()) == (True, True)
    assert type(bars.progress_bar(disable=True)) is (
        tqdm.notebook.tqdm if has_widgets else tqdm.tqdm
    )
    assert not list(recwarn)


def test_the_shell_of_ipython_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_notebook(monkeypatch, None)
    assert not bars.in_notebook()

"""Progress bars at terminals, in notebooks and in pipes."""

import sys
from types import SimpleNamespace

import pytest
import tqdm.notebook

from nmt import bars


def pretend_ipython(monkeypatch: pytest.MonkeyPatch, shell: object) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


@pytest.mark.parametrize("is_terminal", [False, True])
@pytest.mark.parametrize("shell", [None, SimpleNamespace()])
def test_a_terminal(is_terminal: bool, shell: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a shell of IPython, which has no kernel."""
    pretend_ipython(monkeypatch, shell)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    assert (bars.in_notebook(), bars.is_watched()) == (False, is_terminal)
    assert type(bars.progress_bar(disable=True)) is tqdm.tqdm


@pytest.mark.parametrize("has_widgets", [False, True])
def test_a_notebook(
    has_widgets: bool, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    pretend_ipython(monkeypatch, SimpleNamespace(kernel="kernel"))
    monkeypatch.setattr(
        bars, "find_spec", lambda name: object() if has_widgets and name == "ipywidgets" else None
    )
    assert (bars.in_notebook(), bars.is_watched()) == (True, True)
    assert type(bars.progress_bar(disable=True)) is (
        tqdm.notebook.tqdm if has_widgets else tqdm.tqdm
    )
    assert not list(recwarn)

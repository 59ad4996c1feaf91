"""The built documentation. Needs the extra `docs`, which `make docs` installs."""

import os
import re
import subprocess
import sys

import pytest

from tests.documentation import ROOT

pytest.importorskip("mkdocs", reason="needs pip install -e '.[docs]'")
pytestmark = pytest.mark.slow
LOADED = re.compile(
    r"<(?:script|img|iframe)[^>]* src=\"(?:https?:)?//|<link[^>]* href=\"(?:https?:)?//"
    r"|(?:url\(|@import )[\"']?(?:https?:)?//"
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pages and styles, built strictly: a missing page or anchor is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-f", ".mkdocs.yml"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([*command, "-d", str(folder)], cwd=ROOT, env=environment, check=True)
    files = [path for path in folder.rglob("*") if path.suffix in (".html", ".css")]
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in files}


def test_pages_load_nothing_from_the_network(pages: dict[str, str]) -> None:
    assert [name for name, text in pages.items() if LOADED.search(text)] == []


def test_pages_are_complete(pages: dict[str, str]) -> None:
    """Equations are MathML, an option stays on one line, and a linked configuration has a page."""
    equations = pages["models.html"]
    assert equations.count("<math") > 50
    assert not re.search(r"arithmatex|\$\$|\\(?:frac|sum|mathrm|top)\b", equations)
    assert '<code class="option">--resume</code>' in pages["tutorial.html"]
    assert 'href="files/configs/tatoeba.yaml.html"' in pages["recipes.html"]
    assert "bidirectional" in pages["files/configs/tatoeba.yaml.html"]

"""The built documentation. Needs the extra `docs`, which `make docs` installs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documentation import PAGES, ROOT

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


def test_every_page_is_there(pages: dict[str, str]) -> None:
    generated = [f"reference/{name}.md" for name in ("configuration", "commands", "errors")]
    names = [*generated, *(page.removeprefix("docs/") for page in PAGES if page != "README.md")]
    assert {Path(name).with_suffix(".html").as_posix() for name in names} <= set(pages)


def test_pages_load_nothing_from_the_network(pages: dict[str, str]) -> None:
    assert [name for name, text in pages.items() if LOADED.search(text)] == []


def test_equations_are_mathml(pages: dict[str, str]) -> None:
    html = pages["models.html"]
    assert html.count("<math") > 50
    assert not re.search(r"arithmatex|\$\$|\\(?:frac|sum|mathrm|top)\b", html)


def test_options_and_configurations(pages: dict[str, str]) -> None:
    """An option stays on one line; a configuration has a page."""
    assert '<code class="option">--resume</code>' in pages["tutorial.html"]
    assert 'href="files/configs/tatoeba.yaml.html"' in pages["recipes.html"]
    assert "bidirectional" in pages["files/configs/tatoeba.yaml.html"]

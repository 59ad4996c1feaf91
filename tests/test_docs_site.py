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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, built strictly: a missing page or anchor is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "-f",
        ".mkdocs.yml",
        "-d",
        str(folder),
    ]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def pages_of(site: Path) -> dict[str, str]:
    return {
        path.relative_to(site).as_posix(): path.read_text(encoding="utf-8")
        for path in site.rglob("*.html")
    }


def test_every_page_is_there(site: Path) -> None:
    names = {
        page.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        for page in PAGES
        if page.parent != ROOT
    }
    references = {
        f"reference/{name}.html" for name in ("configuration", "commands", "errors", "python")
    }
    assert names | references <= set(pages_of(site))


def test_pages_load_nothing_from_the_network(site: Path) -> None:
    for name, html in pages_of(site).items():
        loaded = re.findall(
            r'<(?:script|img|iframe)[^>]* src="([^"]+)"|<link[^>]* href="([^"]+)"', html
        )
        assert [url for urls in loaded for url in urls if re.match(r"(?:https?:)?//", url)] == [], (
            name
        )
    for path in site.rglob("*.css"):
        assert not re.search(
            r"(?:url\(|@import )[\"']?(?:https?:)?//", path.read_text(encoding="utf-8")
        ), path.name


def test_equations_are_mathml(site: Path) -> None:
    html = pages_of(site)["models.html"]
    assert html.count("<math") > 50
    assert "arithmatex" not in html
    assert not re.search(r"\$\$|\\(?:frac|sum|mathrm|top)\b", html)


def test_options_stay_on_one_line(site: Path) -> None:
    assert '<code class="option">--resume</code>' in pages_of(site)["tutorial.html"]


def test_configurations_are_pages(site: Path) -> None:
    pages = pages_of(site)
    assert 'href="files/configs/tatoeba.yaml.html"' in pages["recipes.html"]
    assert "bidirectional" in pages["files/configs/tatoeba.yaml.html"]

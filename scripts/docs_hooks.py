"""What `make docs` does beyond MkDocs.

- It adds the pages that are made from the code, and the notebook as a page.
- Pages link to files outside of docs/, such as ../configs/sample.yaml. Each becomes a page that
shows the file.
- It turns equations into MathML. Browsers draw that themselves, so the pages need no script for
equations.
"""

import re
from html import unescape
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter

from scripts.reference_pages import PAGES

OPTION = re.compile(r"<code>(-[\w-]+)</code>")
EQUATION = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


NOTEBOOK = "notebook"

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE_LINK = re.compile(r"\]\(\.\./((?:configs|scripts)/[\w./-]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the reference, the notebook, and a page for each file outside of docs/ that
    a page links to.
    """
    for name, make in PAGES.items():
        files.append(File.generated(config, f"reference/{name}.md", content=make()))
    names = {"unique_key": NOTEBOOK, "output_files_dir": f"{NOTEBOOK}_files"}
    exporter = MarkdownExporter()
    text, resources = exporter.from_filename(str(ROOT / "docs" / f"{NOTEBOOK}.ipynb"), names)
    files.append(File.generated(config, f"{NOTEBOOK}.md", content=text))
    for path, picture in resources["outputs"].items():
        files.append(File.generated(config, path, content=picture))
    linked = {
        path
        for file in files.documentation_pages()
        for path in OUTSIDE_LINK.findall(file.content_string)
    }
    for path in sorted(linked):
        text = (ROOT / path).read_text(encoding="utf-8")
        language = {".py": "python", ".yaml": "yaml"}.get(Path(path).suffix, "text")
        files.append(
            File.generated(
                config, f"files/{path}.md", content=f"# {path}\n\n````{language}\n{text}````\n"
            )
        )
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let links to files outside of docs/ lead to their pages."""
    return OUTSIDE_LINK.sub(r"](files/\1.md)", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Replace the LaTeX of each equation, and keep options such as --resume on one line."""

    def to_mathml(match: re.Match[str]) -> str:
        _, bracket, latex = match.groups()
        mathml = convert(unescape(latex), display="block" if bracket == "[" else "inline")
        return f'<div class="equation">{mathml}</div>' if bracket == "[" else mathml

    return OPTION.sub(r'<code class="option">\1</code>', EQUATION.sub(to_mathml, html))

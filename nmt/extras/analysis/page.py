"""`nmt analyze --report`: an analysis on one HTML page."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nmt.errors import DataError
from nmt.evaluation.results import Evaluation
from nmt.extras.analysis import html
from nmt.extras.analysis.results import Analysis
from nmt.files import write_text
from nmt.report import curves
from nmt.report.table import Table
from nmt.run.folder import CURVES_FILE, JOURNAL_FILE, load_run_config
from nmt.run.journal import Journal

FILE_NAME = "index.html"

Sections = list[tuple[str, str]]  # (heading, HTML)


def write(analysis: Analysis, folder: Path, members: Sequence[Path] = ()) -> None:
    """Write the page to `folder`, which is created if necessary. An old page stays until the new
    one is complete.

    Args:
        members: the run folders; none for a file of translations.

    Raises:
        DataError: the page cannot be written.
    """
    evaluation = analysis.evaluation
    sections = _score_sections(evaluation, analysis.remarks)
    for run in dict.fromkeys(members):
        heading = "Training" if len({*members}) == 1 else f"Training of {run}"
        sections += _curves_section(run, heading)
    for section in (*analysis.sections, *analysis.details):
        sections += [(table.heading, html.table(table)) for table in section.tables]
        sections += section.page
    facts = Table("facts", "", ("name", "value"), list(_flatten(evaluation.facts)))
    sections.append(("Origin of these results", html.table(facts)))
    title = f"Evaluation of {evaluation.subject.split(',')[0]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / FILE_NAME, html.page(title, sections))
    except OSError as error:
        raise DataError(
            f"{folder / FILE_NAME}: cannot write the page ({error.strerror or error})"
        ) from None


def _score_sections(evaluation: Evaluation, remarks: Sequence[str]) -> Sections:
    subject = html.paragraphs([evaluation.subject])
    scores = html.score_table(evaluation.scores)
    sections = [("Scores", subject + scores + html.paragraphs(remarks))]
    if evaluation.lowercase_scores:
        sections.append(("Scores ignoring case", html.score_table(evaluation.lowercase_scores)))
    if evaluation.tokenized_scores:
        note = html.paragraphs(["As in old papers: do not compare with the scores above."])
        table = html.score_table(evaluation.tokenized_scores)
        sections.append(("Tokenized score", note + table))
    return sections


def _curves_section(run: Path, heading: str) -> Sections:
    """The training curves; empty if the run has no journal."""
    events = Journal(run / JOURNAL_FILE).read()
    with TemporaryDirectory() as folder:
        picture = Path(folder) / CURVES_FILE
        curves.draw(events, picture, title=run.name, metric=load_run_config(run).training.metric)
        if not picture.exists():
            return []
        text = "Loss, BLEU and learning rate by training step"
        return [(heading, html.picture(picture.read_bytes(), text))]


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """(dotted key, value as text) of a nested mapping, without the values that are None."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for number, member in enumerate(value, 1):
                yield from _flatten(member, f"{prefix}{key}.{number}.")
        elif value is not None:
            yield f"{prefix}{key}", str(value)

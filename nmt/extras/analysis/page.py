"""`nmt analyze --report`: an analysis on one HTML page."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from nmt.commands.options import to_json
from nmt.errors import DataError
from nmt.evaluation.results import TOKENIZED_WARNING
from nmt.evaluation.scores import score_table
from nmt.extras.analysis import html
from nmt.extras.analysis.results import Analysis
from nmt.files import write_text
from nmt.report import curves
from nmt.run.folder import CURVES_FILE, JOURNAL_FILE, load_run_config
from nmt.run.journal import Journal

FILE_NAME = "index.html"


def write(analysis: Analysis, folder: Path, members: Sequence[Path] = ()) -> None:
    """Write the page to `folder`, which is created if necessary. An old page stays until the new
    one is complete.

    Args:
        members: the run folders; none for a file of translations.

    Raises:
        DataError: the page cannot be written.
    """
    evaluation, sections = analysis.evaluation, []
    for heading, scores, texts in (
        ("Scores", evaluation.scores, [evaluation.subject, *analysis.remarks]),
        ("Scores ignoring case", evaluation.lowercase_scores, []),
        ("Tokenized score", evaluation.tokenized_scores, [TOKENIZED_WARNING]),
    ):
        if scores:
            table = html.table(score_table(scores))
            sections.append((heading, f"{html.paragraphs(texts)}\n{table}"))
    for run in dict.fromkeys(members):
        sections += _training_section(run)
    for section in (*analysis.sections, *analysis.details):
        sections += [(table.heading, html.table(table)) for table in section.tables]
        sections += section.page
    facts = escape(to_json(evaluation.facts))
    sections.append(("Origin of these results", f'<div class="scroll"><pre>{facts}</pre></div>'))
    path = folder / FILE_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        title = f"Evaluation of {evaluation.subject.split(',')[0]}"
        write_text(path, html.page(title, sections))
    except OSError as error:
        raise DataError(f"{path}: cannot write the page ({error.strerror or error})") from None


def _training_section(run: Path) -> list[tuple[str, str]]:
    """The training curves; nothing if the run has no journal."""
    events = Journal(run / JOURNAL_FILE).read()
    with TemporaryDirectory() as folder:
        picture = Path(folder) / CURVES_FILE
        curves.draw(events, picture, title=run.name, metric=load_run_config(run).training.metric)
        if not picture.exists():
            return []
        text = "Loss, BLEU and learning rate by training step"
        return [(f"Training of {run.name}", html.picture(picture.read_bytes(), text))]

"""`nmt evaluate --report`: one page on an evaluation, which needs no network and no other file."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nmt.decoding.translation import Translation
from nmt.errors import DataError
from nmt.evaluation.results import Details, Evaluation
from nmt.files import write_text
from nmt.metrics.table import Table
from nmt.report import curves
from nmt.report.fragments import paragraphs_fragment, picture_fragment, scores_fragment, sentences_fragment, table_fragment
from nmt.report.html import attention_figure, page
from nmt.run.folder import CURVES_FILE, JOURNAL_FILE, load_run_config
from nmt.run.journal import Journal
from nmt.training.validation import spread

NAME = "index.html"
N_SPREAD, N_EXTREMES = 6, 3  # sentences whose attention is shown: short, middling and long ones; the best, and the worst

Sections = list[tuple[str, str]]


def write(evaluation: Evaluation, folder: Path, members: Sequence[Path] = (), translations: Sequence[Translation] = ()) -> None:
    """The page, in `folder`, which is made; what stood there before stays until the new page is whole.

    Args:
        members: the runs whose evaluation it is, and their translations; of a file of translations there are none.

    Raises:
        DataError: it cannot be written.
    """
    sections = _scores(evaluation)
    if evaluation.comparison is not None:
        sections += _comparison(evaluation)
    for run in dict.fromkeys(members):
        sections += _curves(run, "Training" if len({*members}) == 1 else f"Training of {run}")
    if evaluation.details is not None:
        sections += _details(evaluation, evaluation.details)
        sections += _attention(evaluation, evaluation.details, translations)
    origin = Table("origin", "", ("what", "value"), list(_flat(evaluation.facts)))
    sections.append(("Where this comes from", table_fragment(origin)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / NAME, page(f"Evaluation of {evaluation.subject.split(',')[0]}", sections))
    except OSError as error:
        raise DataError(f"{folder / NAME}: the page cannot be written ({error.strerror or error})") from None


def _scores(evaluation: Evaluation) -> Sections:
    scores = scores_fragment(evaluation.scores)
    sections = [("Scores", paragraphs_fragment([evaluation.subject]) + scores + paragraphs_fragment(evaluation.remarks))]
    if evaluation.lowercase:
        sections.append(("Scores ignoring case", scores_fragment(evaluation.lowercase)))
    if evaluation.tokenized:
        note = "As old papers have it: not to be compared with the scores above."
        sections.append(("Tokenised score", paragraphs_fragment([note]) + scores_fragment(evaluation.tokenized)))
    return sections


def _comparison(evaluation: Evaluation) -> Sections:
    comparison = evaluation.comparison
    assert comparison is not None
    against = paragraphs_fragment([f"Against {comparison.other.subject}.", *comparison.remarks])
    changed = [evaluation.changed(comparison, change) for change in comparison.changes]
    heading = "Sentences that gained or lost most"
    return [
        ("Comparison", "\n".join([against, *map(table_fragment, comparison.tables())])),
        (heading, sentences_fragment(changed)),
    ]


def _curves(run: Path, heading: str) -> Sections:
    """Its training; nothing where the run has no journal."""
    events = Journal(run / JOURNAL_FILE).read()
    with TemporaryDirectory() as folder:
        picture = Path(folder) / CURVES_FILE
        curves.draw(events, picture, title=run.name, metric=load_run_config(run).training.metric)
        if not picture.exists():
            return []
        return [(heading, picture_fragment(picture.read_bytes(), "Loss, BLEU and learning rate by step of the training"))]


def _details(evaluation: Evaluation, details: Details) -> Sections:
    sections = [(table.heading, table_fragment(table)) for table in details.tables]
    faults = Table("outputs", "", ("outputs", "sentences"), [(kind, len(found)) for kind, found in details.faults.items()])
    examples = [evaluation.sentence(i) for i in sorted({found[0] for found in details.faults.values() if found})]
    sections.append(("Outputs that are wrong at a glance", table_fragment(faults) + sentences_fragment(examples)))
    for heading, chosen in (("Best sentences, by chrF", details.best), ("Worst sentences, by chrF", details.worst)):
        sections.append((heading, sentences_fragment([evaluation.sentence(i) for i in chosen])))
    return sections


def _attention(evaluation: Evaluation, details: Details, translations: Sequence[Translation]) -> Sections:
    """Of some sentences; nothing for a model that looks at nothing."""
    chosen = [*spread(evaluation.text.sources or [], N_SPREAD), *details.best[:N_EXTREMES], *details.worst[:N_EXTREMES]]
    figures = []
    for i in dict.fromkeys(chosen):
        one = translations[i]
        if one.has_attention:
            figures.append(attention_figure(*one.attended, one.attention, f"Sentence {i + 1:,}: {one.source}"))
    return [("Attention", "\n".join(figures))] if figures else []


def _flat(values: dict[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Dotted keys and their values as text."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for number, one in enumerate(value, 1):
                yield from _flat(one, f"{above}{key}.{number}.")
        elif value is not None:
            yield f"{above}{key}", str(value)

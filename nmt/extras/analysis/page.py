"""`nmt evaluate --report`: an evaluation on one HTML page."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nmt.data.evaluation_set import pick_across_lengths
from nmt.decoding.translation import Translation
from nmt.errors import DataError
from nmt.evaluation.results import Details, Evaluation
from nmt.extras.analysis import html
from nmt.extras.analysis.comparison import Comparison
from nmt.extras.analysis.warnings import DESCRIPTIONS
from nmt.files import write_text
from nmt.report import curves
from nmt.report.table import Table
from nmt.run.folder import CURVES_FILE, JOURNAL_FILE, load_run_config
from nmt.run.journal import Journal

FILE_NAME = "index.html"
N_ACROSS_LENGTHS, N_EXTREMES_SHOWN = (
    6,
    3,
)  # sentences whose attention is shown: from short to long; best and worst ones

Sections = list[tuple[str, str]]  # (heading, HTML)


def write(
    evaluation: Evaluation,
    folder: Path,
    members: Sequence[Path] = (),
    translations: Sequence[Translation] = (),
) -> None:
    """Write the page to `folder`, which is created if necessary. An old page stays until the new
    one is complete.

    Args:
        members: the run folders; none for a file of translations.
        translations: of all sentences by the run or ensemble; none for a file of translations.

    Raises:
        DataError: the page cannot be written.
    """
    sections = _score_sections(evaluation)
    if evaluation.comparison is not None:
        sections += _comparison_sections(evaluation, evaluation.comparison)
    for run in dict.fromkeys(members):
        sections += _curves_section(
            run, "Training" if len({*members}) == 1 else f"Training of {run}"
        )
    if evaluation.details is not None:
        sections += _detail_sections(evaluation, evaluation.details)
        sections += _attention_section(evaluation, evaluation.details, translations)
    facts = Table("facts", "", ("name", "value"), list(_flatten(evaluation.facts)))
    sections.append(("Origin of these results", html.table(facts)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(
            folder / FILE_NAME,
            html.page(f"Evaluation of {evaluation.subject.split(',')[0]}", sections),
        )
    except OSError as error:
        raise DataError(
            f"{folder / FILE_NAME}: cannot write the page ({error.strerror or error})"
        ) from None


def _score_sections(evaluation: Evaluation) -> Sections:
    scores = html.score_table(evaluation.scores)
    sections = [
        (
            "Scores",
            html.paragraphs([evaluation.subject]) + scores + html.paragraphs(evaluation.remarks),
        )
    ]
    if evaluation.lowercase_scores:
        sections.append(("Scores ignoring case", html.score_table(evaluation.lowercase_scores)))
    if evaluation.tokenized_scores:
        note = "As in old papers: do not compare with the scores above."
        sections.append(
            (
                "Tokenized score",
                html.paragraphs([note]) + html.score_table(evaluation.tokenized_scores),
            )
        )
    return sections


def _comparison_sections(evaluation: Evaluation, comparison: Comparison) -> Sections:
    intro = html.paragraphs([f"Compared with {comparison.subject}.", *comparison.remarks])
    changed = [evaluation.changed_sentence(comparison, change) for change in comparison.changes]
    return [
        ("Comparison", "\n".join([intro, *map(html.table, comparison.tables())])),
        ("Sentences that gained or lost most", html.sentence_list(changed)),
    ]


def _curves_section(run: Path, heading: str) -> Sections:
    """The training curves; empty if the run has no journal."""
    events = Journal(run / JOURNAL_FILE).read()
    with TemporaryDirectory() as folder:
        picture = Path(folder) / CURVES_FILE
        curves.draw(events, picture, title=run.name, metric=load_run_config(run).training.metric)
        if not picture.exists():
            return []
        return [
            (
                heading,
                html.picture(picture.read_bytes(), "Loss, BLEU and learning rate by training step"),
            )
        ]


def _detail_sections(evaluation: Evaluation, details: Details) -> Sections:
    sections = [(table.heading, html.table(table)) for table in details.tables]
    rows = [(kind, len(indices), DESCRIPTIONS[kind]) for kind, indices in details.warnings.items()]
    counts = Table("outputs", "", ("outputs", "sentences", "meaning"), rows)
    examples = [
        evaluation.sentence(i)
        for i in sorted({indices[0] for indices in details.warnings.values() if indices})
    ]
    sections.append(("Outputs that look wrong", html.table(counts) + html.sentence_list(examples)))
    for heading, indices in (
        ("Best sentences, by chrF", details.best),
        ("Worst sentences, by chrF", details.worst),
    ):
        sections.append((heading, html.sentence_list([evaluation.sentence(i) for i in indices])))
    return sections


def _attention_section(
    evaluation: Evaluation, details: Details, translations: Sequence[Translation]
) -> Sections:
    """The attention of some sentences; empty for a model without attention."""
    across_lengths = pick_across_lengths(evaluation.text.sources or [], N_ACROSS_LENGTHS)
    figures = []
    for i in dict.fromkeys(
        [*across_lengths, *details.best[:N_EXTREMES_SHOWN], *details.worst[:N_EXTREMES_SHOWN]]
    ):
        translation = translations[i]
        if translation.has_attention:
            caption = f"Sentence {i + 1:,}: {translation.source}"
            figures.append(
                html.attention_figure(*translation.attention_labels, translation.attention, caption)
            )
    return [("Attention", "\n".join(figures))] if figures else []


def _flatten(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """(dotted key, value as text) of a nested mapping, without the values that are None."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for number, member in enumerate(value, 1):
                yield from _flatten(member, f"{prefix}{key}.{number}.")
        elif value is not None:
            yield f"{prefix}{key}", str(value)

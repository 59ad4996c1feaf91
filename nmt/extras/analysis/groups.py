"""Scores by group of sentences, and the sentences to look at first."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence

from nmt.evaluation.scores import score
from nmt.extras.analysis import html
from nmt.extras.analysis.leaks import TrainingOverlap, words
from nmt.extras.analysis.results import Section, Translated, sentence_text
from nmt.report.table import Table

LENGTHS = (5, 10, 15, 20, 30, 40)  # upper limits of the classes: words of the source
FREQUENCIES = (0, 5, 50, 500, 5000)  # upper limits of the classes: occurrences in the training data


def groups(translated: Translated) -> Section:
    """Scores by group."""
    tables = [by_length(translated)]
    if (overlap := translated.overlap) is not None:
        tables += [
            by_rarest_word(translated, overlap.src_counts),
            by_frequency(translated, overlap.tgt_counts),
            by_overlap(translated, overlap),
        ]
    return Section(tables=tables)


def extremes(translated: Translated) -> Section:
    """The best and the worst sentences."""
    values, texts, page = {}, [], []
    for name, indices in zip(("best", "worst"), translated.extremes, strict=True):
        values[name] = sentences = [translated.sentence(i) for i in indices]
        heading = f"the {len(indices)} {name} sentences, by chrF"
        texts.append("\n".join([heading, *map(sentence_text, sentences)]))
        page.append((f"{name.title()} sentences, by chrF", html.sentence_list(sentences)))
    return Section(values=values, text="\n\n".join(texts), page=page)


def by_length(text: Translated) -> Table:
    """Scores by the length of the source."""
    groups = [bisect_left(LENGTHS, len(source.split())) for source in text.sources]
    names = class_names(LENGTHS, first=1)
    return _by_group("by_source_length", "By source length", "words", text, groups, names)


def by_rarest_word(text: Translated, counts: Mapping[str, int]) -> Table:
    """Scores by how often the rarest word of the source is in the training data."""
    rarest = [
        min((counts.get(word, 0) for word in words(source)), default=0) for source in text.sources
    ]
    groups = [bisect_left(FREQUENCIES, count) for count in rarest]
    heading = "By frequency of the rarest source word in the training data"
    names = class_names(FREQUENCIES, first=0)
    return _by_group("by_rarest_source_word", heading, "occurrences", text, groups, names)


def by_overlap(text: Translated, overlap: TrainingOverlap) -> Table:
    """Scores by whether the source or the target is in the training data."""
    groups = [
        0 if exact else 1 if near else 2
        for exact, near in zip(overlap.exact, overlap.near, strict=True)
    ]
    heading = "By whether the source or the target is in the training data"
    return _by_group(
        "by_seen_in_training", heading, "seen", text, groups, ["exactly", "nearly", "no"]
    )


def by_frequency(text: Translated, counts: Mapping[str, int]) -> Table:
    """Recall and precision of words, by how often they are in the training data."""
    n_reference, n_output, n_matched = Counter[int](), Counter[int](), Counter[int]()
    for output, reference in zip(text.outputs, text.references[0], strict=True):
        in_output, in_reference = Counter(words(output)), Counter(words(reference))
        for total, bag in (
            (n_reference, in_reference),
            (n_output, in_output),
            (n_matched, in_output & in_reference),
        ):
            for word, count in bag.items():
                total[bisect_left(FREQUENCIES, counts.get(word, 0))] += count
    rows = [
        (
            name,
            n_reference[group],
            100 * n_matched[group] / n_reference[group],
            100 * n_matched[group] / max(1, n_output[group]),
        )
        for group, name in enumerate(class_names(FREQUENCIES, first=0))
        if n_reference[group]
    ]
    note = (
        "recall: % of the reference's words in the output; precision: % of the output's words "
        "in the reference; 0 includes words outside the vocabulary: the model has only seen <unk> "
        "in their place"
    )
    columns = ("occurrences", "words", "recall", "precision")
    return Table(
        "by_word_frequency", "Words by frequency in the training data", columns, rows, note
    )


def _by_group(
    name: str,
    heading: str,
    column: str,
    text: Translated,
    groups: Sequence[int],
    names: Sequence[str],
) -> Table:
    """BLEU, chrF and the relative length of the outputs for each group; `groups` has the group of
    each sentence.
    """
    rows = []
    for group, label in enumerate(names):
        indices = [i for i, sentence_group in enumerate(groups) if sentence_group == group]
        if indices:
            outputs, *references = (
                [stream[i] for i in indices] for stream in (text.outputs, *text.references)
            )
            bleu, chrf = score(outputs, references, ("BLEU", "chrF"), lowercase=text.lowercase)
            n_output, n_reference = (
                sum(len(line.split()) for line in lines) for lines in (outputs, references[0])
            )
            rows.append(
                (label, len(indices), bleu.value, chrf.value, 100 * n_output / max(1, n_reference))
            )
    note = "length %: words in outputs per 100 in references"
    if text.lowercase:
        note = f"{note}; scores ignore case"
    return Table(name, heading, (column, "sentences", "BLEU", "chrF", "length %"), rows, note)


def class_names(limits: Sequence[int], first: int) -> list[str]:
    """The names of classes of whole numbers from `first` on, with these upper limits."""
    starts = [first, *(limit + 1 for limit in limits)]
    ranges = [
        f"{low}" if low == high else f"{low}-{high}"
        for low, high in zip(starts, limits, strict=False)
    ]
    return [*ranges, f"{starts[-1]} and more"]

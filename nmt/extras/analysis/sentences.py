"""Which sentences are hard: scores by group, the best and the worst, outputs that look wrong."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence

from nmt.data.splitting import sentence_key
from nmt.evaluation.scores import MetricScore, score, usual_metrics
from nmt.extras.analysis import html
from nmt.extras.analysis.leaks import words
from nmt.extras.analysis.results import Section, Translated, sentence_text
from nmt.report.table import Table
from nmt.texts.warnings import repeats

LENGTHS = (5, 10, 15, 20, 30, 40)  # upper limits of the classes: words of the source
FREQUENCIES = (0, 5, 50, 500, 5000)  # upper limits of the classes: occurrences in the training data
# times in a row; so low because outputs whose references repeat words too are not reported
MIN_REPEATS = 2
MIN_LENGTH = 0.8  # of the shortest reference, in characters
MAX_LISTED = 10  # sentence numbers per kind of warning on the screen

DESCRIPTIONS: Mapping[str, str] = {
    "empty": "no text",
    "cut": "truncated at the maximum length",
    "repeating": "the same words twice in a row, unlike the references",
    "copied": "the source, unchanged",
    "short": f"shorter than {100 * MIN_LENGTH:.0f} % of the shortest reference",
}


def leaks(translated: Translated) -> Section | None:
    """How many sentences are in the training data, and the scores of the others."""
    if (overlap := translated.overlap) is None:
        return None
    exact, near, clean = sum(overlap.exact), sum(overlap.near), overlap.clean
    scores: list[MetricScore] = []
    if 0 < len(clean) < len(translated.outputs):
        outputs, *references = (
            [lines[i] for i in clean] for lines in (translated.outputs, *translated.references)
        )
        scores = score(
            outputs,
            references,
            usual_metrics(translated.language, translated.references)[0],
            lowercase=translated.lowercase,
            language=translated.language,
        )
    remark = f"sentences that are in the training data: {exact:,} exactly, {near:,} nearly"
    if exact or near:
        shown = ", ".join(f"{score.name} {score.value:.2f}" for score in scores)
        case = ", ignoring case" if translated.lowercase else ""
        remark += f"; scores without them{case}: {shown or 'none, no sentence is left'}"
    return Section(
        [remark],
        values={
            "leaks": {
                "exact": exact,
                "near": near,
                "scores_without": [score.to_dict() for score in scores],
            }
        },
    )


def groups(translated: Translated) -> Section:
    """Scores by length; by how often the rarest word of the source is in the training data; by
    whether the source or the target is there.
    """
    lengths = [bisect_left(LENGTHS, len(source.split())) for source in translated.sources]
    names = class_names(LENGTHS, first=1)
    tables = [
        _by_group("by_source_length", "By source length", "words", translated, lengths, names)
    ]
    if (overlap := translated.overlap) is not None:
        rarest = [
            min((overlap.src_counts[word] for word in words(source)), default=0)
            for source in translated.sources
        ]
        seen = zip(overlap.exact, overlap.near, strict=True)
        tables += [
            _by_group(
                "by_rarest_source_word",
                "By frequency of the rarest source word in the training data",
                "occurrences",
                translated,
                [bisect_left(FREQUENCIES, count) for count in rarest],
                class_names(FREQUENCIES, first=0),
            ),
            by_frequency(translated, overlap.tgt_counts),
            _by_group(
                "by_seen_in_training",
                "By whether the source or the target is in the training data",
                "seen",
                translated,
                [0 if exact else 1 if near else 2 for exact, near in seen],
                ["exactly", "nearly", "no"],
            ),
        ]
    return Section(tables=tables)


def extremes(translated: Translated) -> Section:
    values, texts, page = {}, [], []
    for name, indices in zip(("best", "worst"), translated.extremes, strict=True):
        values[name] = sentences = [translated.sentence(i) for i in indices]
        heading = f"the {len(indices)} {name} sentences, by chrF"
        texts.append("\n".join([heading, *map(sentence_text, sentences)]))
        page.append((f"{name.title()} sentences, by chrF", html.sentence_list(sentences)))
    return Section(values=values, text="\n\n".join(texts), page=page)


def by_frequency(text: Translated, counts: Mapping[str, int]) -> Table:
    """Recall and precision of words, by how often they are in the training data."""
    n_reference, n_output, n_matched = Counter[int](), Counter[int](), Counter[int]()
    for output, reference in zip(text.outputs, text.references[0], strict=True):
        in_output, in_reference = Counter(words(output)), Counter(words(reference))
        bags = in_output, in_reference, in_output & in_reference
        for total, bag in zip((n_output, n_reference, n_matched), bags, strict=True):
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
    return Table(
        "by_word_frequency",
        "Words by frequency in the training data",
        ("occurrences", "words", "recall", "precision"),
        rows,
        "recall: % of the reference's words in the output; precision: % of the output's words "
        "in the reference; 0 includes words outside the vocabulary: the model has only seen <unk> "
        "in their place",
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
            bleu, chrf = score(
                outputs,
                references,
                ("BLEU", "chrF"),
                lowercase=text.lowercase,
                language=text.language,
            )
            n_output, n_reference = (
                sum(len(line.split()) for line in lines) for lines in (outputs, references[0])
            )
            rows.append(
                (label, len(indices), bleu.value, chrf.value, 100 * n_output / max(1, n_reference))
            )
    case = "; scores ignore case" if text.lowercase else ""
    note = f"length %: words in outputs per 100 in references{case}"
    return Table(name, heading, (column, "sentences", "BLEU", "chrF", "length %"), rows, note)


def class_names(limits: Sequence[int], first: int) -> list[str]:
    """The names of classes of whole numbers from `first` on, with these upper limits."""
    *starts, last = first, *(limit + 1 for limit in limits)
    ranges = zip(starts, limits, strict=True)
    names = [f"{low}" if low == high else f"{low}-{high}" for low, high in ranges]
    return [*names, f"{last} and more"]


def wrong_outputs(translated: Translated) -> Section:
    """How many outputs look wrong, and which."""
    found, lines = output_warnings(translated), []
    for kind, indices in found.items():
        line = f"{f'{kind} outputs':<20}{len(indices):>5,}  {DESCRIPTIONS[kind]}"
        if indices:
            line += f": {', '.join(str(i + 1) for i in indices[:MAX_LISTED])}"
        lines.append(line + " ..." if len(indices) > MAX_LISTED else line)
    rows = [(kind, len(indices), DESCRIPTIONS[kind]) for kind, indices in found.items()]
    counts = html.table(Table("outputs", "", ("outputs", "sentences", "meaning"), rows))
    examples = sorted({indices[0] for indices in found.values() if indices})
    sentences = html.sentence_list([translated.sentence(i) for i in examples])
    return Section(
        values={"outputs": {kind: [i + 1 for i in indices] for kind, indices in found.items()}},
        text="\n".join(lines),
        page=[("Outputs that look wrong", counts + sentences)],
    )


def output_warnings(translated: Translated) -> dict[str, list[int]]:
    """The indices of the outputs that look wrong, for each kind in `DESCRIPTIONS`."""
    signs = []
    for source, output, translation, *references in zip(
        translated.sources,
        translated.outputs,
        translated.translations,
        *translated.references,
        strict=True,
    ):
        key, keys = sentence_key(output), map(sentence_key, references)
        signs.append(
            {
                "empty": not output.strip(),
                "cut": not translation.complete,
                "repeating": _repeats(output) and not any(map(_repeats, references)),
                "copied": key and key == sentence_key(source) and key not in keys,
                "short": len(output) < MIN_LENGTH * min(map(len, references)),
            }
        )
    return {kind: [i for i, sign in enumerate(signs) if sign[kind]] for kind in DESCRIPTIONS}


def _repeats(text: str) -> bool:
    return repeats(words(text), MIN_REPEATS)

"""Where a system is good and where it is not: scores by group, and the sentences worth looking at."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from nmt.data.splitting import sentence_key
from nmt.evaluation.leaks import Seen, words
from nmt.metrics.scores import score, sentence_chrf
from nmt.metrics.table import Table
from nmt.text.repetition import repeats

LENGTHS = (5, 10, 15, 20, 30, 40)  # words of the source, up to
FREQUENCIES = (0, 5, 50, 500, 5000)  # occurrences in the training data, up to
UNKNOWN = "0: also the words of the training data that are not in the vocabulary, of which the model has seen no more than <unk>"
TIMES = 2  # in a row: what repeats; so few, for the references tell what may


@dataclass(frozen=True)
class Scored:
    """What is broken down.

    Attributes:
        sources, outputs: N texts each. references: streams of N texts.
        complete: [N], False where the search was cut at its maximum length.
    """

    sources: Sequence[str]
    outputs: Sequence[str]
    references: Sequence[Sequence[str]]
    complete: Sequence[bool]

    def only(self, chosen: Sequence[int]) -> "Scored":
        """Some of the sentences."""

        def pick(texts: Sequence[str]) -> list[str]:
            return [texts[i] for i in chosen]

        references = [pick(stream) for stream in self.references]
        return Scored(pick(self.sources), pick(self.outputs), references, [self.complete[i] for i in chosen])


def by_length(scored: Scored) -> Table:
    """Scores by the length of the source."""
    groups = [_class_of(len(source.split()), LENGTHS) for source in scored.sources]
    return _by_group("by_source_length", "By source length", "words", scored, groups, _names(LENGTHS, first=1))


def by_rarest_word(scored: Scored, counts: Mapping[str, int]) -> Table:
    """Scores by how often the rarest word of the source is in the training data."""
    rarest = [min((counts.get(word, 0) for word in words(source)), default=0) for source in scored.sources]
    groups = [_class_of(count, FREQUENCIES) for count in rarest]
    heading = "By the rarest word of the source, in the training data"
    table = _by_group("by_rarest_source_word", heading, "occurrences", scored, groups, _names(FREQUENCIES, first=0))
    return replace(table, note=UNKNOWN)


def by_seen(scored: Scored, seen: Seen) -> Table:
    """Scores by whether the sentence was seen in training."""
    names = ["source or target seen", "nearly so", "neither"]
    groups = [0 if exact else 1 if near else 2 for exact, near in zip(seen.exact, seen.near, strict=True)]
    return _by_group("by_seen_in_training", "By what the training data has of them", "seen", scored, groups, names)


def by_frequency(scored: Scored, counts: Mapping[str, int]) -> Table:
    """How many words of the references are in the outputs, by how often they are in the training data."""
    wanted, written, matched = Counter[int](), Counter[int](), Counter[int]()
    for output, reference in zip(scored.outputs, scored.references[0], strict=True):
        there, right = Counter(words(output)), Counter(words(reference))
        for tally, bag in ((wanted, right), (written, there), (matched, there & right)):
            for word, count in bag.items():
                tally[_class_of(counts.get(word, 0), FREQUENCIES)] += count
    rows = [
        (name, wanted[group], 100 * matched[group] / wanted[group], 100 * matched[group] / max(1, written[group]))
        for group, name in enumerate(_names(FREQUENCIES, first=0))
        if wanted[group]
    ]
    what = "recall: of the words of the references, those in the output; precision: of those in the outputs, in the reference"
    columns = ("occurrences", "words", "recall", "precision")
    return Table("by_word_frequency", "Words by how often they are in the training data", columns, rows, f"{what}; {UNKNOWN}")


def extremes(scored: Scored, n: int) -> tuple[list[int], list[int]]:
    """The sentences of best and of worst chrF, at most `n` each, none in both; of equally good ones the longer first."""
    values = sentence_chrf(scored.outputs, scored.references)
    order = sorted(range(len(values)), key=lambda i: (-values[i], -len(scored.references[0][i])))
    n = min(n, len(order) // 2)
    return order[:n], order[::-1][:n]


def faults(scored: Scored) -> dict[str, list[int]]:
    """The outputs that are wrong at a glance: kind -> places."""
    kinds: dict[str, Callable[[int], bool]] = {
        "empty": lambda i: not scored.outputs[i].strip(),
        "cut": lambda i: not scored.complete[i],
        "repeating": lambda i: _repeats(scored.outputs[i]) and not any(_repeats(stream[i]) for stream in scored.references),
        "copied": lambda i: _is_copy(scored.outputs[i], scored.sources[i], [stream[i] for stream in scored.references]),
    }
    return {kind: [i for i in range(len(scored.outputs)) if is_so(i)] for kind, is_so in kinds.items()}


def _repeats(text: str) -> bool:
    return repeats(words(text), TIMES)


def _is_copy(output: str, source: str, references: Sequence[str]) -> bool:
    key = sentence_key(output)
    return bool(key) and key == sentence_key(source) and key not in map(sentence_key, references)


def _by_group(name: str, heading: str, column: str, scored: Scored, groups: Sequence[int], names: Sequence[str]) -> Table:
    """BLEU, chrF, and the length of outputs for that of references, of the sentences of each group."""
    rows = []
    for group, label in enumerate(names):
        chosen = [i for i, one in enumerate(groups) if one == group]
        if chosen:
            part = scored.only(chosen)
            bleu, chrf = score(part.outputs, part.references, ("BLEU", "chrF"))
            length, wanted = (sum(len(text.split()) for text in texts) for texts in (part.outputs, part.references[0]))
            rows.append((label, len(chosen), bleu.value, chrf.value, 100 * length / max(1, wanted)))
    return Table(name, heading, (column, "sentences", "BLEU", "chrF", "length %"), rows)


def _class_of(value: int, limits: Sequence[int]) -> int:
    return sum(value > limit for limit in limits)


def _names(limits: Sequence[int], first: int) -> list[str]:
    starts = [first, *(limit + 1 for limit in limits)]
    ranges = [f"{low}" if low == high else f"{low}-{high}" for low, high in zip(starts, limits, strict=False)]
    return [*ranges, f"{starts[-1]} and more"]

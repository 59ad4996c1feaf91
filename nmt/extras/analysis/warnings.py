"""Outputs that look wrong: the kinds of warning, and the sentences that have them."""

from collections.abc import Callable, Mapping, Sequence

from nmt.data.splitting import sentence_key
from nmt.decoding.output import repeats
from nmt.extras.analysis.doubled_words import doubles
from nmt.extras.analysis.groups import TranslatedText
from nmt.extras.analysis.leaks import words

MIN_REPEATS = (
    2  # times in a row; so low because outputs whose references repeat words too are not reported
)
MIN_LENGTH = 0.8  # of the shortest reference, in characters

DESCRIPTIONS: Mapping[str, str] = {
    "empty": "no text",
    "cut": "truncated at the maximum length",
    "repeating": "the same words twice in a row, unlike the references",
    "copied": "the source, unchanged",
    "doubling": "a word or its stem more often than in the source and in the references",
    "skipping": "a source word received little attention",
    "inventing": "a word that is neither in the training data, nor in the source or a reference",
    "short": f"shorter than {100 * MIN_LENGTH:.0f} % of the shortest reference",
}


def output_warnings(
    text: TranslatedText, tgt_counts: Mapping[str, int] | None
) -> dict[str, list[int]]:
    """The indices of the outputs that look wrong, for each kind in `DESCRIPTIONS`.

    Args:
        tgt_counts: the words of the training data. None: not known, and no output counts as
            inventing.
    """
    references = [*zip(*text.references, strict=True)]  # [N] tuples
    kinds: dict[str, Callable[[int], bool]] = {
        "empty": lambda i: not text.outputs[i].strip(),
        "cut": lambda i: not text.complete[i],
        "repeating": lambda i: _repeats(text.outputs[i]) and not any(map(_repeats, references[i])),
        "copied": lambda i: _is_copy(text.outputs[i], text.sources[i], references[i]),
        "doubling": lambda i: doubles(text.outputs[i], text.sources[i], references[i]),
        "skipping": lambda i: text.skipped[i],
        "inventing": lambda i: (
            tgt_counts is not None
            and _invents(text.outputs[i], [text.sources[i], *references[i]], tgt_counts)
        ),
        "short": lambda i: len(text.outputs[i]) < MIN_LENGTH * min(map(len, references[i])),
    }
    return {
        kind: [i for i in range(len(text.outputs)) if applies(i)] for kind, applies in kinds.items()
    }


def _repeats(text: str) -> bool:
    return repeats(words(text), MIN_REPEATS)


def _invents(output: str, others: Sequence[str], counts: Mapping[str, int]) -> bool:
    known = {word for other in others for word in words(other)}
    return any(
        word.isalpha() and word not in counts and word not in known for word in words(output)
    )


def _is_copy(output: str, source: str, references: Sequence[str]) -> bool:
    key = sentence_key(output)
    return bool(key) and key == sentence_key(source) and key not in map(sentence_key, references)

"""Outputs that look wrong, and the sentences that have them.

Doubled words are a common sign that the decoder lost its place in the source: of 2,000 outputs of a
model with BLEU 39 for Tatoeba English-German, 60 were found; 54 of them were wrong. The test with
outputs and references swapped, so that each hit is a mistake, found 10. Source words with little
attention are often left out. Attention is not alignment, so this finds few omissions, and some that
are none: of the same outputs it found 39; 27 of them lacked the word.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, takewhile

from nmt.data.splitting import sentence_key
from nmt.decoding.alignment import token_to_word
from nmt.decoding.translator import Translation
from nmt.decoding.warnings import repeats
from nmt.extras.analysis import html
from nmt.extras.analysis.leaks import words
from nmt.extras.analysis.results import Section, Translated
from nmt.report.table import Table
from nmt.text.tokenizers import Tokenizer

# times in a row; so low because outputs whose references repeat words too are not reported
MIN_REPEATS = 2
MIN_LENGTH = 0.8  # of the shortest reference, in characters
# letters: two words share a stem if they differ only after 4 letters, in at most 2 letters each
MIN_STEM, MAX_ENDING = 4, 2
MIN_LETTERS = (
    5  # of a skipped word; shorter words are mostly function words, which need no attention
)
MAX_ATTENTION = 0.3  # summed over the output, and averaged over the tokens of the word
MAX_LISTED = 10  # sentence numbers per kind of warning on the screen

_WORDS_AND_MARKS = re.compile(r"\w+|[^\w\s]")
_MARKS_AROUND = re.compile(r"^\W+|\W+$")

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


def wrong_outputs(translated: Translated) -> Section:
    """How many outputs look wrong, and which."""
    assert translated.translator is not None
    found, lines = output_warnings(translated, translated.translator.src_tokenizer), []
    for kind, indices in found.items():
        numbers = ", ".join(str(i + 1) for i in indices[:MAX_LISTED])
        more = " ..." if len(indices) > MAX_LISTED else ""
        lines.append(
            f"{f'{kind} outputs':<20}{len(indices):>5,}  {DESCRIPTIONS[kind]}"
            + (f": {numbers}{more}" if indices else "")
        )
    rows = [(kind, len(indices), DESCRIPTIONS[kind]) for kind, indices in found.items()]
    counts = html.table(Table("outputs", "", ("outputs", "sentences", "meaning"), rows))
    examples = sorted({indices[0] for indices in found.values() if indices})
    sentences = html.sentence_list([translated.sentence(i) for i in examples])
    return Section(
        values={"outputs": {kind: [i + 1 for i in indices] for kind, indices in found.items()}},
        text="\n".join(lines),
        page=[("Outputs that look wrong", counts + sentences)],
    )


def output_warnings(translated: Translated, tokenizer: Tokenizer) -> dict[str, list[int]]:
    """The indices of the outputs that look wrong, for each kind in `DESCRIPTIONS`; without training
    data none counts as inventing. `tokenizer`: of the source.
    """
    sources, outputs, overlap = translated.sources, translated.outputs, translated.overlap
    references = [*zip(*translated.references, strict=True)]  # [N] tuples
    kinds: dict[str, Callable[[int], bool]] = {
        "empty": lambda i: not outputs[i].strip(),
        "cut": lambda i: not translated.translations[i].complete,
        "repeating": lambda i: _repeats(outputs[i]) and not any(map(_repeats, references[i])),
        "copied": lambda i: _is_copy(outputs[i], sources[i], references[i]),
        "doubling": lambda i: doubles(outputs[i], sources[i], references[i]),
        "skipping": lambda i: bool(skipped_words(translated.translations[i], tokenizer)),
        "inventing": lambda i: (
            overlap is not None
            and _invents(outputs[i], [sources[i], *references[i]], overlap.tgt_counts)
        ),
        "short": lambda i: len(outputs[i]) < MIN_LENGTH * min(map(len, references[i])),
    }
    return {kind: [i for i in range(len(outputs)) if holds(i)] for kind, holds in kinds.items()}


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


def doubles(output: str, source: str, references: Sequence[str]) -> bool:
    """Whether words with the same stem follow each other in the output, and in no reference; or the
    output has more words of one stem than the source and every reference have of any stem.
    """
    texts = [_WORDS_AND_MARKS.findall(text.casefold()) for text in (output, source, *references)]
    if _has_neighbors(texts[0]) and not any(map(_has_neighbors, texts[2:])):
        return True
    counts = [_largest_count(words) for words in texts]
    return counts[0] > max(1, *counts[1:])


def share_stem(word: str, other: str) -> bool:
    """Whether two words are the same, or differ only in an ending, such as intelligent and
    intelligente.
    """
    if word == other:
        return True
    n_common = sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, other, strict=False))
    )
    return n_common >= MIN_STEM and max(len(word), len(other)) - n_common <= MAX_ENDING


def _has_neighbors(words: Sequence[str]) -> bool:
    return any(word.isalnum() and share_stem(word, after) for word, after in pairwise(words))


def _largest_count(words: Sequence[str]) -> int:
    """How many words have the most common stem; short words are left out, since function words
    repeat in good sentences.
    """
    content = [word for word in words if word.isalpha() and len(word) >= MIN_STEM]
    return max((sum(share_stem(word, other) for other in content) for word in content), default=0)


def skipped_words(translation: Translation, tokenizer: Tokenizer) -> list[str]:
    """The source words with little attention; none for a model without attention. `tokenizer`: of
    the source.
    """
    if not translation.has_attention:
        return []
    indices = token_to_word(translation.src_tokens, tokenizer.join)
    totals = translation.attention.sum(0)[:-1].tolist()
    by_word: dict[int, list[float]] = defaultdict(list)
    for token, index, total in zip(translation.src_tokens, indices, totals, strict=True):
        # A comma or full stop is no part of its word here.
        if index >= 0 and any(map(str.isalnum, token)):
            by_word[index].append(total)
    words = tokenizer.join(translation.src_tokens).split()
    return [
        words[index]
        for index, attention in by_word.items()
        if _is_long(words[index]) and sum(attention) / len(attention) < MAX_ATTENTION
    ]


def _is_long(word: str) -> bool:
    """Whether it is long, and not a contraction such as doesn't."""
    letters = _MARKS_AROUND.sub("", word)
    return letters.isalpha() and len(letters) >= MIN_LETTERS

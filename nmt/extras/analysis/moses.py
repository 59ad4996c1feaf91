"""BLEU as papers count it that report scores of lower-cased, tokenized text, such as those on
Multi30k.

Translations and references are lower-cased, then their punctuation is normalized, then they are
split by the Moses tokenizer, without splitting at hyphens:
`lowercase.perl | normalize-punctuation.perl | tokenizer.perl`, as in the files `*.lc.norm.tok.*` of
Multi30k (Elliott and others 2017). BLEU of these tokens equals that of multi-bleu.perl.
"""

from collections.abc import Sequence
from dataclasses import replace

import sacremoses
from sacremoses.corpus import NonbreakingPrefixes

from nmt.commands.evaluate import N_RESAMPLES
from nmt.errors import DataError
from nmt.evaluation.scores import MetricScore, score_tokenized


def score_moses(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    language: str,
) -> MetricScore:
    """BLEU of detokenized text, after all texts are lower-cased, normalized and split into the
    words of Moses; with a confidence interval.

    Args:
        hypotheses: N texts. references: streams of N texts.
        language: the code of the target language, such as de, which `check_language` knows.

    Raises:
        DataError: there is nothing to score, or the streams have different lengths.
    """
    tokenized, *tokenized_references = (
        split_words(texts, language) for texts in (hypotheses, *references)
    )
    words = (
        f"lower-case, normalize-punctuation, Moses tokenizer {language}, no -a, sacremoses "
        f"{sacremoses.__version__}"
    )
    bleu = score_tokenized(
        tokenized, tokenized_references, words, lowercase=True, bootstrap=N_RESAMPLES
    )
    return replace(bleu, name="Moses BLEU")


def split_words(texts: Sequence[str], language: str) -> list[str]:
    """Each text, lower-cased and normalized, with spaces between its words."""
    normalizer = sacremoses.MosesPunctNormalizer(language, perl_parity=True)
    tokenizer = sacremoses.MosesTokenizer(language)
    return [
        tokenizer.tokenize(normalizer.normalize(text.lower()), return_str=True) for text in texts
    ]


def check_language(language: str) -> None:
    """Raises: DataError if Moses does not know the language."""
    languages = sorted({*NonbreakingPrefixes().available_langs.values()})
    if language not in languages:
        raise DataError(
            f"{language}: not a language of the Moses tokenizer; choose from {', '.join(languages)}"
        )

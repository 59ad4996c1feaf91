"""Metric scores of translations: detokenized text in, a number with its signature out.

The numbers are those of sacrebleu, to the last digit, in a fraction of its memory: it holds the
n-grams of all references and the counts of all samples at once, gigabytes for 20,000 sentences.
Here both are processed in blocks, with the same random numbers and the same arithmetic.

To add a metric of sacrebleu: a row in `METRICS`, and its name in the help of `--metric`.
"""

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import exp, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.errors import DataError
from nmt.plugins import Part
from nmt.report.table import Table

SEED = 12345  # the default of sacrebleu, so its command line gives the same intervals
BLOCK_SENTENCES = 500  # sentences with n-grams in memory at once


@dataclass(frozen=True)
class MetricScore:
    """The score of a whole set of translations.

    Attributes:
        name: the metric, as in `METRICS`.
        value: 0..100; TER, where less is better, can exceed 100.
        signature: all settings behind the number, in the format of sacrebleu.
        interval: 95 % confidence interval by bootstrap (lower, upper), or None without bootstrap.
    """

    name: str
    value: float
    signature: str
    interval: tuple[float, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "metric": self.name,
            "score": self.value,
            "signature": self.signature,
            "interval": self.interval and list(self.interval),
        }


# options: for sacrebleu; force: no warning about text that looks tokenized. asian: further options
# for Chinese and Japanese. no_words: the scripts, as in `_SCRIPTS`, in which a metric finds no
# words. ignores_case: in any case, as on the command line of sacrebleu.
METRICS: Mapping[str, Part] = {
    "BLEU": Part("sacrebleu.metrics:BLEU", options={"force": True}),
    "chrF": Part("sacrebleu.metrics:CHRF", options={}),
    "chrF++": Part("sacrebleu.metrics:CHRF", options={"word_order": 2}, no_words=("ja", "zh", "")),
    "TER": Part(
        "sacrebleu.metrics:TER",
        options={},
        asian={"normalized": True, "asian_support": True},
        no_words=("",),
        ignores_case=True,
        less_is_better=True,
    ),
}
# Language -> its name, and sacrebleu's tokenizer for it. All other languages have 13a.
TOKENIZERS = {
    "ja": ("Japanese", "ja-mecab"),
    "zh": ("Chinese", "zh"),
    "ko": ("Korean", "ko-mecab"),
}
# The scripts of these languages, and those without tokenizer and without spaces between words
# (Thai, Lao, Tibetan, Burmese, Khmer), each with the share of its characters in a text of that
# language. Japanese has Chinese characters as well.
_SCRIPTS = {
    "ja": (re.compile("[\u3040-\u30ff]"), 0.1),
    "zh": (re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"), 0.3),
    "ko": (re.compile("[\u1100-\u11ff\uac00-\ud7ff]"), 0.3),
    "": (re.compile("[\u0e00-\u109f\u1780-\u17ff]"), 0.3),
}
BLEU_ORDER = 4  # words in the longest sequences that BLEU counts


@dataclass(frozen=True)
class SentenceStatistics:
    """The counts of one system for a metric of sacrebleu.

    sacrebleu has no public functions from texts to counts and from counts to a score. The private
    methods that are used here and in `collect_statistics` are the same in all versions that
    pyproject.toml admits (>=2.4, <3).

    Attributes:
        metric: of sacrebleu.
        rows: [N, D], counts per sentence. The sums over sentences determine the corpus score.
    """

    metric: Any
    rows: list[list[float]]

    @property
    def score(self) -> float:
        """The score of all sentences."""
        return float(self.metric._aggregate_and_compute(self.rows).score)

    def score_of(self, sums: NDArray[Any]) -> Any:
        """The score of some sentences: a float of 32 or 64 bits, as sacrebleu has it.

        Args:
            sums: [D], of the rows of these sentences.
        """
        return self.metric._compute_score_from_stats(sums).score

    def bootstrap_scores(self, n_samples: int) -> list[Any]:
        """Scores of samples of N sentences, drawn with replacement."""
        random, rows = np.random.default_rng(SEED), np.array(self.rows, np.float32)
        return [
            self.score_of(rows[random.choice(len(rows), len(rows))].sum(0))
            for _ in range(n_samples)
        ]


def collect_statistics(
    metric: Any, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> SentenceStatistics:
    """The statistics of N sentences. `metric` stores the number of references for its signature.

    Raises: DataError if a stream of references has another length.
    """
    if not references or {*map(len, references)} != {len(hypotheses)}:
        raise DataError("hypotheses and references differ in length")
    rows: list[list[float]] = []
    for start in range(0, len(hypotheses), BLOCK_SENTENCES):
        block = slice(start, start + BLOCK_SENTENCES)
        rows += metric._extract_corpus_statistics(
            hypotheses[block], [stream[block] for stream in references]
        )
    return SentenceStatistics(metric, rows)


def score(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Sequence[str] = ("BLEU", "chrF"),
    *,
    lowercase: bool = False,
    bootstrap: int = 0,
    language: str = "",
) -> list[MetricScore]:
    """The corpus scores of detokenized `hypotheses`, in the order of `metrics`.

    Args:
        hypotheses: N texts.
        references: streams of N texts; each stream is one set of references.
        metrics: names of `METRICS`.
        lowercase: ignore case; the signature shows it.
        bootstrap: the number of resamples for a 95 % confidence interval; 0 for no interval.
        language: of the texts; what the metrics count as words depends on it.
    """
    return [
        _score(name, hypotheses, references, lowercase, bootstrap, language) for name in metrics
    ]


def _script_of(language: str, references: Sequence[Sequence[str]]) -> str | None:
    """The script of texts, as in `_SCRIPTS`; None if words are what stands between spaces."""
    code = re.split("[-_]", language.lower())[0]
    if code in TOKENIZERS:
        return code
    text = "".join("".join(chain.from_iterable(references)).split())
    return next(
        (
            found
            for found, (script, share) in _SCRIPTS.items()
            if len(script.findall(text)) > share * len(text)
        ),
        None,
    )


def usual_metrics(language: str, references: Sequence[Sequence[str]]) -> tuple[list[str], str]:
    """The metrics that mean something for texts of a language, and why the others do not, or ""."""
    script = _script_of(language, references)
    others = [name for name, part in METRICS.items() if script in (part.trait("no_words") or ())]
    remark = (
        f"{' and '.join(others)} would count words between spaces, and this language writes none: "
        "shown only with --metric"
    )
    return [name for name in METRICS if name not in others], remark if others else ""


def choose_tokenizer(language: str, references: Sequence[Sequence[str]]) -> tuple[str, str]:
    """What splits texts into words for BLEU: sacrebleu's choice for the language, as with its
    option `-l`; for languages that it does not know, its choice for the script of the references.

    Args:
        language: of the references, as zh or zh-TW; "" if it is not known.

    Returns:
        the name of the tokenizer, and what the user should know of it, or "". Characters take the
        place of words that sacrebleu cannot find.
    """
    from sacrebleu.metrics.bleu import BLEU

    code = _script_of(language, references)
    if code is None:
        return "13a", ""
    characters = "BLEU counts characters (tok:char)"
    if code not in TOKENIZERS:
        return "char", (
            "the script of the references has no spaces between words, and sacrebleu has no "
            f"tokenizer for it: {characters}"
        )
    name, tokenizer = TOKENIZERS[code]
    try:
        BLEU(tokenize=tokenizer)
    except (RuntimeError, AssertionError):  # another dictionary
        return "char", (
            f'the words of {name} need MeCab (pip install "nmt[{code}]"); without it, {characters}'
        )
    guess = f"the references look {name}: BLEU splits them as sacrebleu does (tok:{tokenizer})"
    return tokenizer, "" if _script_of(language, ()) else guess


def bleu_remarks(
    references: Sequence[Sequence[str]], language: str, hypotheses: Sequence[str] = ()
) -> list[str]:
    """What the user should know of BLEU on these texts: how they are split, whether it says
    anything.
    """
    _, remark = choose_tokenizer(language, references)
    split = build_metric("BLEU", language=language, references=references).tokenizer
    remarks = [remark] if remark else []
    for what, texts in (("reference", [*chain.from_iterable(references)]), ("output", hypotheses)):
        if texts and all(len(split(text).split()) < BLEU_ORDER for text in texts):
            remarks.append(
                f"no {what} has {BLEU_ORDER} words, the length that BLEU counts up to, so BLEU has "
                "no meaning here; use chrF"
            )
            break
    return remarks


def bleu(
    outputs: Sequence[str], references: Sequence[str], lowercase: bool, language: str
) -> float:
    """For validations, with one reference for each output."""
    return score(outputs, [references], ["BLEU"], lowercase=lowercase, language=language)[0].value


def chrf(outputs: Sequence[str], references: Sequence[str], lowercase: bool) -> float:
    """For validations, with one reference for each output."""
    return score(outputs, [references], ["chrF"], lowercase=lowercase)[0].value


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[float]:
    """The chrF of each sentence, the only metric here that is meaningful for a single sentence."""
    metric = build_metric("chrF")
    return [
        float(metric.sentence_score(text, sentence_references).score)
        for text, *sentence_references in zip(hypotheses, *references, strict=True)
    ]


def build_metric(
    name: str,
    *,
    lowercase: bool = False,
    language: str = "",
    references: Sequence[Sequence[str]] = (),
) -> Any:
    """The metric object of sacrebleu for a name in `METRICS`, with the words of a language, which
    the references show if it is not known.
    """
    part = METRICS[name]
    options = {**part.trait("options")}
    if lowercase and not part.trait("ignores_case"):
        options["lowercase"] = True
    if name == "BLEU":
        options["tokenize"], _ = choose_tokenizer(language, references)
    if part.trait("asian") and _script_of(language, references) in ("ja", "zh"):
        options |= part.trait("asian")
    return part.load()(**options)


def canonical_name(name: str) -> str:
    """The spelling of a metric in `METRICS`, from any case. Raises: DataError if it is unknown."""
    for metric in METRICS:
        if name.casefold() == metric.casefold():
            return metric
    raise DataError(f"{name}: not a metric; choose from {', '.join(METRICS)}")


def score_table(scores: Sequence[MetricScore]) -> Table:
    columns, rows = ("metric", "score", "95 % interval", "signature"), []
    for score in scores:
        ends = [f"{end:.2f}" for end in score.interval or ()]
        interval = f"[{', '.join(ends)}]" if ends else ""
        rows.append((score.name, score.value, interval, score.signature))
    return Table("scores", "", columns, rows, formats={"score": ".2f"})


def perplexity(mean_loss: float) -> float:
    """exp of a mean negative log-likelihood in nats per token, limited to exp(700), near the
    largest float.
    """
    return exp(min(mean_loss, 700))


def _score(
    name: str,
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    lowercase: bool,
    bootstrap: int,
    language: str,
) -> MetricScore:
    metric = build_metric(name, lowercase=lowercase, language=language, references=references)
    counts = collect_statistics(metric, hypotheses, references)
    interval = None
    if bootstrap > 1:
        # As in sacrebleu: as wide as the middle 95 % of the scores, and centered on their mean. A
        # sample without any match scores a Python float, the others np.float32: statistics.mean
        # fails on mixed types.
        samples, n_cut = counts.bootstrap_scores(bootstrap), bootstrap // 40
        ordered = sorted(map(type(max(samples)), samples))
        mean = float(statistics.mean(ordered))
        half_width = float(0.5 * (ordered[-1 - n_cut] - ordered[n_cut]))
        most = inf if METRICS[name].trait("less_is_better") else 100.0  # TER has no end
        interval = max(mean - half_width, 0.0), min(mean + half_width, most)
        metric.n_bootstrap, metric.seed = bootstrap, SEED  # for the signature
    return MetricScore(name, counts.score, str(metric.get_signature()), interval)

"""Validation: the quality of the model on the dev set during training."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from nmt.config.parts import METRICS
from nmt.config.schema import Config
from nmt.data.batches import plan_batches, read_batches
from nmt.data.corpus import Corpus, read_sentences
from nmt.data.evaluation_set import pick_across_lengths
from nmt.decoding.fast import for_search
from nmt.decoding.translator import Translator
from nmt.evaluation.scores import perplexity
from nmt.model.seq2seq import Seq2Seq
from nmt.report import heatmap
from nmt.run.folder import load_tokenizers, load_vocabularies
from nmt.training.loss import Loss

N_SAMPLES = 3  # sentences of the dev set shown at each validation


@dataclass(frozen=True)
class Sample:
    """A sentence of the dev set, its reference and its translation."""

    source: str
    reference: str
    output: str

    def __str__(self) -> str:
        return f"source     {self.source}\nreference  {self.reference}\noutput     {self.output}"


@dataclass(frozen=True)
class Validation:
    """The result of a validation.

    Attributes:
        loss: nats per target token, teacher-forced.
        scores: by name in `parts.METRICS`, of greedy translations, detokenized; case-insensitive if
            the model is lower-cased.
        samples: translations of the same sentences at each validation, from short to long.
        attention: heatmap (PNG) of the middle sample; None without attention.
    """

    loss: float
    scores: Mapping[str, float]
    samples: tuple[Sample, ...] = ()
    attention: bytes | None = None

    @property
    def perplexity(self) -> float:
        return perplexity(self.loss)

    @property
    def middle_sample(self) -> Sample | None:
        """The sample of medium length; None without samples."""
        return self.samples[len(self.samples) // 2] if self.samples else None

    @property
    def figures(self) -> dict[str, float]:
        """For the journal and TensorBoard."""
        return {"loss": self.loss, "perplexity": self.perplexity, **self.scores}

    def rank(self, metric: str) -> float:
        """The value by which `training.metric` ranks checkpoints; higher is better."""
        if metric == "loss":
            return -self.loss
        sign = -1 if METRICS[metric].trait("lower_is_better") else 1
        return sign * self.scores[metric]

    @property
    def scores_text(self) -> str:
        """The scores with their titles."""
        titles = {name: METRICS[name].trait("title") for name in self.scores}
        return "  ".join(f"{titles[name]} {value:.2f}" for name, value in self.scores.items())


class Validator:
    """Measures the model on the dev set: the loss over all pairs, and the scores of greedy
    translations of the first `training.validation_pairs`.

    Args:
        model: read at each validation, so its weights may change in between.
        folder: the run, for its vocabularies and tokenizers.
    """

    def __init__(self, model: Seq2Seq, config: Config, folder: Path) -> None:
        prepared, n_pairs = config.prepared_folder, config.training.validation_pairs
        self.model, self.config = model, config
        self.corpus = Corpus.load(prepared, "dev")
        self.sources = read_sentences(prepared, "dev", "src")[:n_pairs]
        self.references = read_sentences(prepared, "dev", "tgt")[:n_pairs]
        self.sample_indices = pick_across_lengths(self.sources, N_SAMPLES)
        self.tokenizers = load_tokenizers(folder, config)
        self.vocabularies = load_vocabularies(folder)
        self.options = config.decoding.model_copy(update={"method": "beam", "beam": 1})

    def validate(self) -> Validation:
        """Measure the model as it is now. It must be in evaluation mode."""
        translator = Translator(
            for_search(self.model),
            tokenizers=self.tokenizers,
            vocabularies=self.vocabularies,
            options=self.options,
        )
        translations = translator.translate(self.sources)
        outputs = [translation.text for translation in translations]
        scores = {
            name: metric.load()(outputs, self.references, self.config.tokenizer.lowercase)
            for name, metric in METRICS.items()
        }
        samples = tuple(
            Sample(self.sources[i], self.references[i], outputs[i]) for i in self.sample_indices
        )
        middle = translations[self.sample_indices[len(self.sample_indices) // 2]]
        attention = None
        if middle.has_attention:
            attention = heatmap.to_png(*middle.attention_labels, middle.attention)
        return Validation(self._loss(), scores, samples, attention)

    @torch.inference_mode()
    def _loss(self) -> float:
        batch_config, key = self.config.training.batch, (self.config.seed, 0)
        plan = plan_batches(self.corpus.src.lengths, self.corpus.tgt.lengths, batch_config, key=key)
        loss, device = Loss(self.model), self.model.device
        sums = [
            (loss(batch.to(device))[1], batch.n_tokens) for batch in read_batches(self.corpus, plan)
        ]
        nll = sum(float(nll) for nll, _ in sums)
        return nll / sum(n_tokens for _, n_tokens in sums)

"""Validation: the quality of the model on the dev set during training."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from nmt.config.schema import Config, Metric
from nmt.data.batches import plan_batches, read_batches
from nmt.data.corpus import Corpus, read_sentences
from nmt.data.evaluation_set import pick_across_lengths
from nmt.decoding.fast import for_search
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.evaluation.scores import perplexity, score
from nmt.model.seq2seq import Seq2Seq
from nmt.report import heatmap
from nmt.run.folder import load_tokenizers, load_vocabularies
from nmt.training.loss import batch_loss

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
        bleu, chrf: of greedy translations, detokenized; case-insensitive if the model is
            lower-cased.
        samples: translations of the same sentences at each validation, from short to long.
        attention: heatmap (PNG) of the middle sample; None without attention.
    """

    loss: float
    bleu: float
    chrf: float
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
        return {
            "loss": self.loss,
            "perplexity": self.perplexity,
            "bleu": self.bleu,
            "chrf": self.chrf,
        }


# The value of a validation by which `training.metric` ranks checkpoints; higher is better.
VALIDATION_METRICS: dict[Metric, Callable[[Validation], float]] = {
    "bleu": lambda result: result.bleu,
    "chrf": lambda result: result.chrf,
    "loss": lambda result: -result.loss,
}


class Validator:
    """Measures the model on the dev set: the loss over all pairs, greedy BLEU and chrF over the
    first `training.validation_pairs`.

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
        self.tokenizers, self.vocabularies = (
            load_tokenizers(folder, config),
            load_vocabularies(folder),
        )
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
        bleu, chrf = score(
            outputs, [self.references], ["BLEU", "chrF"], lowercase=self.config.tokenizer.lowercase
        )
        samples = tuple(
            Sample(self.sources[i], self.references[i], outputs[i]) for i in self.sample_indices
        )
        attention = _draw_attention(
            translations[self.sample_indices[len(self.sample_indices) // 2]]
        )
        return Validation(self._loss(), bleu.value, chrf.value, samples, attention)

    @torch.inference_mode()
    def _loss(self) -> float:
        batch_config, key = self.config.training.batch, (self.config.seed, 0)
        plan = plan_batches(self.corpus.src.lengths, self.corpus.tgt.lengths, batch_config, key=key)
        losses = [
            batch_loss(self.model, batch.to(self.model.device))
            for batch in read_batches(self.corpus, plan)
        ]
        return sum(loss.nll.item() for loss in losses) / sum(loss.n_tokens for loss in losses)


def _draw_attention(translation: Translation) -> bytes | None:
    """A heatmap (PNG); None for a model without attention."""
    if not translation.has_attention:
        return None
    return heatmap.to_png(*translation.attention_labels, translation.attention)

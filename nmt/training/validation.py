"""Validation: what a model is worth on the dev set, while it is trained."""

from collections.abc import Callable
from pathlib import Path

import torch

from nmt.config.schema import Config, Metric
from nmt.data.batching import plan_batches, read_batches
from nmt.data.corpus import Corpus, read_sentences
from nmt.data.evaluation_set import pick_across_lengths
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.metrics.scores import score
from nmt.model.inference.for_search import for_search
from nmt.model.seq2seq import Seq2Seq
from nmt.report import heatmap
from nmt.run.folder import load_tokenizers, load_vocabularies
from nmt.training.console import Sample, Validation
from nmt.training.loss import batch_loss

N_SAMPLES = 3  # sentences of the dev set that are shown at each validation

# Higher is better.
METRICS: dict[Metric, Callable[[Validation], float]] = {
    "bleu": lambda result: result.bleu,
    "chrf": lambda result: result.chrf,
    "loss": lambda result: -result.loss,
}


class Validator:
    """Scores the model on the dev set: its loss over all pairs, greedy BLEU over the first `training.validation_pairs`."""

    def __init__(self, model: Seq2Seq, config: Config, folder: Path) -> None:
        prepared, n_pairs = config.prepared_folder, config.training.validation_pairs
        self.model, self.config = model, config
        self.corpus = Corpus.load(prepared, "dev")
        self.sources = read_sentences(prepared, "dev", "src")[:n_pairs]
        self.references = read_sentences(prepared, "dev", "tgt")[:n_pairs]
        self.shown = pick_across_lengths(self.sources, N_SAMPLES)
        self.translator = Translator(
            model,
            tokenizers=load_tokenizers(folder, config),
            vocabularies=load_vocabularies(folder),
            options=config.decoding.model_copy(update={"method": "beam", "beam": 1}),
        )

    def validate(self) -> Validation:
        """The model must be in evaluation mode."""
        self.translator.model = for_search(self.model)
        translations = self.translator.translate(self.sources)
        outputs = [translation.text for translation in translations]
        bleu, chrf = score(outputs, [self.references], ["BLEU", "chrF"], lowercase=self.config.tokenizer.lowercase)
        samples = tuple(Sample(self.sources[i], self.references[i], outputs[i]) for i in self.shown)
        attention = _draw_attention(translations[self.shown[len(self.shown) // 2]])
        return Validation(self._loss(), bleu.value, chrf.value, samples, attention)

    @torch.inference_mode()
    def _loss(self) -> float:
        batch_config, seed = self.config.training.batch, self.config.seed
        plan = plan_batches(self.corpus.src.lengths, self.corpus.tgt.lengths, batch_config, seed=seed, epoch=0)
        losses = [batch_loss(self.model, batch.to(self.model.device)) for batch in read_batches(self.corpus, plan)]
        return sum(loss.likelihood.item() for loss in losses) / sum(loss.n_tokens for loss in losses)


def _draw_attention(translation: Translation) -> bytes | None:
    """None for a model that looks at nothing."""
    if not translation.has_attention:
        return None
    return heatmap.to_png(*translation.attended, translation.attention)

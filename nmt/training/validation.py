"""The quality of a model on the dev set: validations during training, and at its end the choice of
the checkpoint that is used.

Validations translate greedily, and often only a part of the dev set, so that the best of many is
partly luck. So the choice is among the kept checkpoints, and perhaps their average, by translations
of all dev pairs (up to a limit) with beam search.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import nn

from nmt.config.parts import METRICS, PointerName
from nmt.config.schema import Config
from nmt.data.batches import plan_batches, read_batches
from nmt.data.corpus import Corpus, read_sentences
from nmt.decoding.torch_model import TorchModel
from nmt.decoding.translator import Translator
from nmt.errors import CheckpointError
from nmt.evaluation.results import pick_across_lengths
from nmt.evaluation.scores import perplexity
from nmt.model.seq2seq import Seq2Seq
from nmt.run.checkpoint import is_average, step_of
from nmt.run.folder import (
    JOURNAL_FILE,
    check_same_data,
    load_tokenizers,
    load_vocabularies,
    open_checkpoints,
)
from nmt.run.journal import read_events, write_event
from nmt.run.progress import Rank
from nmt.run.weights import build_model, load_model, load_weights, save_weights
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
    """

    loss: float
    scores: Mapping[str, float]
    samples: tuple[Sample, ...] = ()

    @property
    def perplexity(self) -> float:
        return perplexity(self.loss)

    @property
    def figures(self) -> dict[str, float]:
        return {"loss": self.loss, "perplexity": self.perplexity, **self.scores}

    def rank(self, metric: str) -> Rank:
        """What `training.metric` ranks checkpoints by."""
        if metric == "loss":
            return Rank(-self.loss, -self.loss)
        sign = -1 if METRICS[metric].trait("lower_is_better") else 1
        return Rank(sign * self.scores[metric], -self.loss)

    @property
    def scores_text(self) -> str:
        return "  ".join(
            f"{METRICS[name].trait('title')} {value:.2f}" for name, value in self.scores.items()
        )


class Validator:
    """Measures the model on the dev set: the loss over all pairs, and the scores of greedy
    translations of the first `training.validation_pairs`.

    Args:
        model: read at each validation, so its weights may change in between.
        folder: the run, for its vocabularies and tokenizers.
    """

    def __init__(self, model: Seq2Seq, config: Config, folder: Path) -> None:
        prepared = config.prepared_folder
        n_pairs = config.training.validation_pairs
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
            TorchModel(self.model),
            tokenizers=self.tokenizers,
            vocabularies=self.vocabularies,
            options=self.options,
        )
        outputs = [translation.text for translation in translator.translate(self.sources)]
        scores = {name: measure(name, outputs, self.references, self.config) for name in METRICS}
        samples = tuple(
            Sample(self.sources[i], self.references[i], outputs[i]) for i in self.sample_indices
        )
        return Validation(self._loss(), scores, samples)

    @torch.inference_mode()
    def _loss(self) -> float:
        plan = plan_batches(
            self.corpus.src.lengths,
            self.corpus.tgt.lengths,
            self.config.training.batch,
            key=(self.config.seed, 0),
        )
        loss = Loss(self.model)
        batches = (batch.to(self.model.device) for batch in read_batches(self.corpus, plan))
        sums = [(loss(batch)[1], batch.n_tokens) for batch in batches]
        nll = sum(float(nll) for nll, _ in sums)
        return nll / sum(n_tokens for _, n_tokens in sums)


def measure(name: str, outputs: Sequence[str], references: Sequence[str], config: Config) -> float:
    """The score of outputs in a metric of `parts.METRICS`."""
    metric = METRICS[name]
    language = [config.data.tgt_language] if metric.trait("by_language") else []
    return float(metric.load()(outputs, references, config.tokenizer.lowercase, *language))


def choose(folder: Path, config: Config, device: torch.device, step: int) -> str | None:
    """After a finished training of `step` updates: average the kept checkpoints if the
    configuration says so, and choose among all, unless the journal says that it is done already.

    Returns:
        what to print, if there was anything to do.
    """
    training = config.training
    last = "choice" if training.final_pairs and training.metric != "loss" else "average"
    if any(
        event["event"] == last and event["step"] >= step
        for event in read_events(folder / JOURNAL_FILE)
    ):
        return None
    if training.average != "none" and (
        len(open_checkpoints(folder, config).kept(training.average)) > 1
    ):
        return average_kept(folder, config, training.average, device)
    return choose_checkpoint(folder, config, device)


def average_kept(folder: Path, config: Config, kept: PointerName, device: torch.device) -> str:
    """Add the mean of the best or the last checkpoints of a run, and choose among all; returns what
    to print.

    Raises:
        CheckpointError: the run keeps fewer than two checkpoints.
    """
    checkpoints = open_checkpoints(folder, config)
    members = [member for member in checkpoints.kept(kept) if not is_average(member.checkpoint)]
    if len(members) < 2:
        number = "one checkpoint is" if members else "no checkpoint is"
        raise CheckpointError(
            f"{folder}: {number} kept as {kept}; train with training.keep_{kept} of 2 or more to "
            "average"
        )
    check_same_data(folder, config.prepared_folder)
    model = build_model(folder, config)
    mean_weights([checkpoints.folder / member.checkpoint for member in members], model)
    result = Validator(model.to(device).eval(), config, folder).validate()
    step = checkpoints.kept("last")[0].step
    steps = sorted(member.step for member in members)
    is_best = checkpoints.add_average(
        step, partial(save_weights, model), result.rank(config.training.metric)
    )
    write_event(folder / JOURNAL_FILE, "average", step, members=steps, **result.figures)
    choice = choose_checkpoint(folder, config, device)
    verdict = (
        "the best checkpoint, used from now on"
        if is_best
        else "not better than the best checkpoint, which stays in use"
    )
    line = (
        f"average of steps {', '.join(map(str, steps))}  dev loss {result.loss:.3f}  "
        f"{result.scores_text}: {verdict}"
    )
    return line if choice is None else f"{line}\n{choice}"


def mean_weights(folders: Sequence[Path], model: nn.Module) -> None:
    """Fill `model` with the mean of the weights of several checkpoints."""
    total: dict[str, torch.Tensor] = {}
    for folder in folders:
        load_weights(folder, model)
        for name, parameter in model.named_parameters():
            value = parameter.detach().double()
            total[name] = total[name] + value if name in total else value
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(total[name] / len(folders))


def choose_checkpoint(folder: Path, config: Config, device: torch.device) -> str | None:
    """Make the kept checkpoint with the best translations the one in use.

    Returns:
        a line to print; None if there is nothing to choose: one checkpoint, `training.final_pairs`
        of 0, or the metric is the loss, for which validations use all dev pairs already.
    """
    training = config.training
    checkpoints = open_checkpoints(folder, config)
    kept = (*checkpoints.kept("best"), *checkpoints.kept("last"))
    names = [*dict.fromkeys(checkpoint.checkpoint for checkpoint in kept)]
    if len(names) < 2 or not training.final_pairs or training.metric == "loss":
        return None
    start_time = time.monotonic()
    sources, references = (
        read_sentences(config.prepared_folder, "dev", side)[: training.final_pairs]
        for side in ("src", "tgt")
    )
    options = config.decoding.model_copy(update={"method": "beam"})
    tokenizers, vocabularies = load_tokenizers(folder, config), load_vocabularies(folder)
    metric = METRICS[training.metric]
    scores: dict[str, float] = {}
    for name in names:
        model = TorchModel(load_model(folder, checkpoints.folder / name).to(device).eval())
        translator = Translator(
            model, tokenizers=tokenizers, vocabularies=vocabularies, options=options
        )
        outputs = [translation.text for translation in translator.translate(sources)]
        scores[name] = measure(training.metric, outputs, references, config)
    sign = -1 if metric.trait("lower_is_better") else 1
    # The first of equals, which has the lower loss.
    best = max(scores, key=lambda name: sign * scores[name])
    checkpoints.prefer(best)
    seconds = time.monotonic() - start_time
    write_event(
        folder / JOURNAL_FILE,
        "choice",
        max(map(step_of, names)),
        metric=training.metric,
        checkpoint=best,
        scores=scores,
        pairs=len(sources),
        beam=options.beam,
        seconds=seconds,
    )
    listing = ", ".join(f"{name} {value:.2f}" for name, value in scores.items())
    return (
        f"chosen by {metric.trait('title')} of {len(sources):,} dev pairs with beam "
        f"{options.beam}: {best}, used from now on ({listing}; {seconds:.0f} s)"
    )

"""The choice among the kept checkpoints at the end of a training: all dev pairs (up to a limit),
translated with beam search.

Validations translate greedily, and often only a part of the dev set, so that the best of many is
partly luck.
"""

import time
from pathlib import Path

import torch

from nmt.config.schema import Config
from nmt.data.corpus import read_sentences
from nmt.decoding.fast import for_search
from nmt.decoding.translator import Translator
from nmt.evaluation.scores import score
from nmt.run.checkpoint import step_of
from nmt.run.folder import JOURNAL_FILE, load_tokenizers, load_vocabularies, open_checkpoints
from nmt.run.journal import Journal
from nmt.run.load import load_model


def choose_checkpoint(folder: Path, config: Config, device: torch.device) -> str | None:
    """Make the kept checkpoint with the best translations the one in use.

    Returns:
        a line to print; None if there is nothing to choose: one checkpoint, `training.final_pairs`
        of 0, or the metric is the loss, for which validations use all dev pairs already.

    Raises:
        CheckpointError: a checkpoint cannot be read, or `best.json` cannot be written.
    """
    training, checkpoints = config.training, open_checkpoints(folder, config)
    names = list(
        dict.fromkeys(
            kept.checkpoint for kept in (*checkpoints.kept("best"), *checkpoints.kept("last"))
        )
    )
    if len(names) < 2 or not training.final_pairs or training.metric == "loss":
        return None
    start_time = time.monotonic()
    sources, references = (
        read_sentences(config.prepared_folder, "dev", side)[: training.final_pairs]
        for side in ("src", "tgt")
    )
    options = config.decoding.model_copy(update={"method": "beam"})
    tokenizers, vocabularies = load_tokenizers(folder, config), load_vocabularies(folder)
    scores = {}
    for name in names:
        model = for_search(load_model(folder, checkpoints.folder / name).to(device).eval())
        translator = Translator(
            model, tokenizers=tokenizers, vocabularies=vocabularies, options=options
        )
        outputs = [translation.text for translation in translator.translate(sources)]
        (result,) = score(
            outputs, [references], [training.metric], lowercase=config.tokenizer.lowercase
        )
        scores[name] = result.value
    best = max(
        scores, key=lambda name: scores[name]
    )  # of equals the first, which the validations prefer
    checkpoints.prefer(best)
    step, seconds = max(step_of(name) for name in names), time.monotonic() - start_time
    facts = {
        "checkpoint": best,
        "scores": scores,
        "pairs": len(sources),
        "beam": options.beam,
        "seconds": seconds,
    }
    Journal(folder / JOURNAL_FILE).write("choice", step, metric=training.metric, **facts)
    listing = ", ".join(f"{name} {value:.2f}" for name, value in scores.items())
    return (
        f"chosen by {result.name} of {len(sources):,} dev pairs with beam {options.beam}: {best}, "
        f"used from now on ({listing}; "
        f"{seconds:.0f} s)"
    )

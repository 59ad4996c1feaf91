"""The model card: what a model is and how good it is, as Markdown with metadata for model hubs."""

import re
from collections.abc import Mapping
from html import escape
from typing import Any

import yaml

from nmt.data.manifest import ORIGINAL

METRIC_TYPES = {"BLEU": "bleu", "chrF": "chrf", "chrF++": "chrf", "TER": "ter"}  # as hubs call them
NO_LICENSE = (
    "The owner has not stated a license. The license of the training data may also "
    "apply to the model."
)


def model_card(facts: Mapping[str, Any], step: int) -> str:
    """The card as Markdown.

    Args:
        facts: of the run, as `nmt runs show --json` prints them.
        step: of the weights. Only scores of these weights are listed.
    """
    facts = _escaped(facts)
    src, tgt = facts["direction"].split("-")
    # The last evaluation of these weights on each text with each beam.
    latest = {
        (event.get("text_sha256"), event.get("beam"), str(event.get("overrides"))): event
        for event in facts["evaluations"]
        if event["step"] == step and event.get("scores")
    }
    evaluations = [*latest.values()]
    bundle = f"{facts['name']}.nmt"
    size = f" and {n / 1e6:.1f} million parameters" if (n := facts["parameters"]["total"]) else ""
    n_src, n_tgt = (vocabulary["size"] for vocabulary in facts["vocabulary"].values())
    return "\n".join(
        [
            f"---\n{_metadata(facts, evaluations)}---\n",
            f"# {facts['name']}: translation from {src} to {tgt}\n",
            f"A recurrent encoder-decoder with attention{size}, made with nmt. "
            f"Its vocabularies have {n_src:,} and {n_tgt:,} tokens.\n",
            f'## Use\n\n```\npip install nmt\nnmt translate --run {bundle} "..."\n```\n',
            "```python\nimport nmt\n",
            f'print(nmt.load("{bundle}").translate(["..."])[0].text)\n```\n',
            "The input is plain text, which nmt splits into sentences. "
            "The files are data: loading them runs no code.\n",
            f"## Scores\n\n{_scores(evaluations)}\n",
            f"## Data\n\n{_data(facts['data'])}\n",
            f"## Training\n\n{_training(facts, step)}\n",
            f"## Limits\n\n- The model has seen {facts['data']['pairs']['train']:,} sentence pairs "
            "and nothing else: other topics, styles and much longer sentences are translated "
            "worse.",
            "- It translates each sentence by itself, without the sentences around it.",
            "- Translations can be wrong, leave things out, or repeat the bias of the data. "
            "A person should check what matters.\n",
            f"## License\n\n{NO_LICENSE}\n",
        ]
    )


def _escaped(value: Any) -> Any:
    """Facts whose texts are no markup: names of files and metrics can come from a stranger."""
    if isinstance(value, Mapping):
        return {key: _escaped(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    if isinstance(value, str):
        return re.sub(r"[\[\]`]", r"\\\g<0>", escape(value, quote=False))
    return value


def _metadata(facts: Mapping[str, Any], evaluations: list[dict[str, Any]]) -> str:
    metadata: dict[str, Any] = {
        "language": facts["direction"].split("-"),
        "library_name": "nmt",
        "pipeline_tag": "translation",
        "tags": ["translation", "nmt", "attention"],
    }
    if evaluations:
        inputs = [_file_name(file["path"]) for file in facts["data"]["inputs"]]
        names = dict.fromkeys(
            METRIC_TYPES.get(score["metric"]) for event in evaluations for score in event["scores"]
        )
        metadata["metrics"] = [name for name in names if name]
        metadata["model-index"] = [
            {
                "name": facts["name"],
                "results": [
                    {
                        "task": {
                            "type": "translation",
                            "name": f"Translation {facts['direction']}",
                        },
                        "dataset": {
                            "name": f"{_text_name(event)}, {', '.join(inputs)}",
                            "type": "text",
                            "split": event.get("split") or "other",
                        },
                        "metrics": [
                            {
                                "type": METRIC_TYPES[score["metric"]],
                                "value": round(score["score"], 2),
                                "name": score["metric"],
                            }
                            for score in event["scores"]
                            if score["metric"] in METRIC_TYPES
                        ],
                    }
                    for event in evaluations
                ],
            }
        ]
    return yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True, width=1000)


def _scores(evaluations: list[dict[str, Any]]) -> str:
    if not evaluations:
        return (
            "These weights have not been evaluated yet: `nmt evaluate` does it, and this card "
            "then lists the scores."
        )
    rows = ["| text | beam | metric | score | 95 % interval | signature |", "|---" * 6 + "|"]
    for event in evaluations:
        for score in event["scores"]:
            cells = (
                _text_name(event),
                event.get("beam"),
                score["metric"],
                f"{score['score']:.2f}",
                ", ".join(f"{value:.2f}" for value in score.get("interval") or ()),
                score["signature"],
            )
            rows.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(
        [
            *rows,
            "\nScores of sacreBLEU on detokenized text; the signature says how they were counted.",
        ]
    )


def _text_name(event: Mapping[str, Any]) -> str:
    count = event.get("sentences")
    sentences = f", {count:,} sentences" if isinstance(count, int) else ""
    return f"{event.get('split') or 'other sentences'}{sentences}"


def _data(data: Mapping[str, Any]) -> str:
    rows = [
        f"- {_file_name(file['path'])}: {file['bytes']:,} bytes, SHA-256 `{file['sha256']}`"
        for file in data["inputs"]
    ]
    urls = [data["url"]] if isinstance(data["url"], str) else data["url"] or ()
    rows += [f"- from <{url}>" for url in urls]
    pairs = ", ".join(f"{count:,} for {name}" for name, count in data["pairs"].items())
    augmented = ""
    if [*data["origins"]] != [ORIGINAL]:
        origins = ", ".join(f"{count:,} {origin}" for origin, count in data["origins"].items())
        augmented = f" A part of the training pairs is synthetic: {origins}."
    return "\n".join(
        [
            *rows,
            f"\nSentence pairs: {pairs}.{augmented} "
            f"Prepared data with this content: `{data['content']}`.",
        ]
    )


def _training(facts: Mapping[str, Any], step: int) -> str:
    text = f"These are the weights after {step:,} updates."
    if progress := facts["progress"]:
        text = (
            f"{progress['step']:,} updates ({progress['seconds'] / 60:.0f} minutes, "
            f"{progress['epoch']} epochs). {text}"
        )
    if facts["sessions"]:
        session = facts["sessions"][-1]
        text = (
            f"{text} nmt {session['version']}, torch {session['libraries']['torch']}, "
            f"{session['device']}."
        )
    return f"{text} `config.yaml` has all settings."


def _file_name(path: str) -> str:
    """The last part of a path of any system; the rest says nothing to others."""
    return path.replace("\\", "/").rpartition("/")[2]

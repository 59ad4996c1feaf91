"""Model cards: what they say of a run, and their metadata."""

import json
from pathlib import Path
from typing import Any

import yaml

from nmt.extras.runs.card import model_card
from tests.conftest import Run

FACTS: dict[str, Any] = {
    "name": "letters",
    "direction": "en-de",
    "parameters": {"total": 1_234_567},
    "vocabulary": {"src": {"size": 1000}, "tgt": {"size": 1200}},
    "progress": {"step": 900, "epoch": 3, "seconds": 120.0},
    "sessions": [],
    "data": {
        "inputs": [{"path": "C:\\home\\me\\pairs|1.tsv", "bytes": 12345, "sha256": "ab" * 32}],
        "url": "https://example.org/pairs.zip",
        "pairs": {"train": 12345, "dev": 10, "test": 20},
        "augmented": False,
        "content": "cd" * 32,
    },
    "evaluations": [],
}


def evaluation(step: int, score: float, **values: Any) -> dict[str, Any]:
    scores = [
        {
            "metric": "BLEU",
            "score": score,
            "signature": "nrefs:1|case:mixed",
            "interval": [score - 1, score + 1],
        }
    ]
    return {
        "step": step,
        "split": "test",
        "beam": 5,
        "sentences": 20,
        "text_sha256": "1",
        "scores": scores,
        **values,
    }


def metadata_of(card: str) -> Any:
    start, text, _ = card.split("---\n", 2)
    assert start == ""
    return yaml.safe_load(text)


def test_a_model_without_scores_and_license() -> None:
    card = model_card(FACTS, 800)
    assert metadata_of(card) == {
        "language": ["en", "de"],
        "library_name": "nmt",
        "pipeline_tag": "translation",
        "tags": ["translation", "nmt", "attention"],
    }
    for text in (
        "# letters: translation from en to de",
        "with attention and 1.2 million parameters",
        "vocabularies have 1,000 and 1,200 tokens",
        "nmt share pull USER/letters",
        "have not been evaluated yet",
        f"- pairs|1.tsv: 12,345 bytes, SHA-256 `{'ab' * 32}`",
        "<https://example.org/pairs.zip>",
        "12,345 for train, 10 for dev, 20 for test",
        "900 updates (2 minutes, 3 epochs). These are the weights after 800 updates.",
        "The owner has not stated a license.",
    ):
        assert text in card, text
    assert "home" not in card


def test_the_scores_are_the_last_ones_of_these_weights() -> None:
    evaluations = [
        evaluation(800, 10),
        evaluation(800, 20),
        evaluation(900, 30),
        evaluation(800, 40, beam=1),
    ]
    card = model_card(
        {**FACTS, "evaluations": evaluations}, 800, repository="me/letters", license_id="cc-by-2.0"
    )
    assert "| test, 20 sentences | 5 | BLEU | 20.00 | 19.00, 21.00 | nrefs:1\\|case:mixed |" in card
    assert ("40.00" in card, "10.00" in card, "30.00" in card) == (True, False, False)
    assert "nmt share pull me/letters\nnmt translate --run runs/letters" in card
    metadata = metadata_of(card)
    assert (metadata["license"], metadata["metrics"]) == ("cc-by-2.0", ["bleu"])
    (model,) = metadata["model-index"]
    assert [result["metrics"][0]["value"] for result in model["results"]] == [20, 40]


def test_show_prints_it(nmt: Run, run: Path) -> None:
    card = nmt("runs", "show", run, "--card")
    assert (card.status, card.err) == (0, "")
    assert card.out == model_card(json.loads(nmt("runs", "show", run, "--json").out), 60)
    assert nmt("runs", "show", run, "--card", "--json").status == 2
    for pointer in ("best", "last"):
        (run / "checkpoints" / f"{pointer}.json").unlink()
    assert "has no weights yet" in nmt("runs", "show", run, "--card").err

"""The confidence in a translation: how it is fitted, and where it goes."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from nmt.decoding.translation import Translation
from nmt.files import write_json
from nmt.run.confidence import Confidence
from nmt.texts.join import TranslatedText, join
from nmt.texts.marked import Marked
from nmt.training.calibrate import auc, fit
from tests import toy
from tests.conftest import Run
from tests.texts.fakes import tokenizer

SENTENCE = "The dog sees the tree."


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with enough dev pairs. Tests write only to copies."""
    folder = tmp_path_factory.mktemp("calibrated")
    data = {"split": {"dev": 220, "test": 20}, "prepared": str(folder / "prepared")}
    training = {**toy.ONE_UPDATE, "batch": {"size": 16}}
    decoding = {"beam": 2, "max_length_ratio": 0.2}
    return toy.train(folder, data=data, training=training, decoding=decoding)


@pytest.fixture
def own(calibrated: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(calibrated, tmp_path / "run"))


def test_fit_finds_the_weights() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal([3.0, -1.0], [2.0, 0.5], (20_000, 2))
    good = rng.random(len(x)) < 1 / (1 + np.exp(-(0.5 - 1.0 * x[:, 0] - 2.0 * x[:, 1])))
    constant, weights = fit(x, good)
    assert [constant, *weights] == pytest.approx([0.5, -1.0, -2.0], abs=0.15)


def test_fit_ends_where_all_are_good_and_a_feature_is_constant() -> None:
    x = np.column_stack([np.linspace(0, 1, 200), np.ones(200)])
    constant, weights = fit(x, np.ones(200, bool))
    p = 1 / (1 + np.exp(-(constant + x @ weights)))
    assert (p > 0.9).all()
    assert (p < 1).all()


def test_auc() -> None:
    good = np.array([True, False, True, False])
    assert auc(np.array([0.9, 0.1, 0.4, 0.4]), good) == 0.875
    assert auc(np.array([0.9, 0.1]), np.array([True, True])) == 0.5


def test_confidence_of_a_translation() -> None:
    features = {"mean_log_prob": (2.0, -3.0, 0.0), "log_src_length": (0.0, 0.0, 9.0)}
    assert Confidence(-1e9, features)(Translation("a")) == 0
    confidence = Confidence(1.0, features)
    sure, unsure, beyond = (
        confidence(Translation("a", "b", ("a",), ("b",), token_log_probs=log_probs))
        for log_probs in ((0.0, 0.0), (-0.5, -0.5), (-50.0, -50.0))
    )
    assert (sure, unsure, beyond) == (0.731, 0.5, 0.007)  # sigmoid of 1, 0, -5


def test_runs_calibrate(own: Path, nmt: Run) -> None:
    before = (own / "confidence.json").read_bytes()
    (own / "confidence.json").unlink()
    # The end of training is not reached again.
    assert nmt("train", "-c", own / "config.yaml", "-o", own, "--resume", "-q").status == 0
    assert not (own / "confidence.json").exists()
    printed = nmt.prints("runs", "calibrate", own)
    assert "220 sentences" in printed
    assert "ECE" in printed
    assert (own / "confidence.json").read_bytes() == before


def test_too_few_dev_pairs(run: Path, nmt: Run) -> None:
    assert not (run / "confidence.json").exists()
    text = "has 20 dev pairs; a confidence needs at least 200\n"
    nmt.refuses(text, "runs", "calibrate", run)
    text = "run `nmt runs calibrate RUN` first\n"
    nmt.refuses(text, "translate", "--run", run, "--least-confidence", "0.5", SENTENCE)


def test_samples_have_none(calibrated: Path, nmt: Run) -> None:
    words = ("--set", "decoding.method=sampling", SENTENCE)
    assert "confidence" not in nmt("translate", "--json", "--run", calibrated, *words).out


def test_bundles_carry_it_and_another_checkpoint_of_the_run_has_none(own: Path, nmt: Run) -> None:
    fitted = own / "checkpoints" / json.loads((own / "confidence.json").read_bytes())["checkpoint"]
    shutil.copytree(fitted, other := own / "checkpoints" / "step-00000009")
    for checkpoint, has_confidence in ((fitted, True), (other, False)):
        bundle = own.with_name(f"{checkpoint.name}.nmt")
        assert nmt("share", "bundle", checkpoint, "-o", bundle).status == 0
        for run in (checkpoint, bundle):
            printed = nmt("translate", "--json", "--run", run, SENTENCE).out
            assert (0 <= json.loads(printed).get("confidence", -1) <= 1) == has_confidence
    words = ("--run", other, "--least-confidence", "0.5", SENTENCE)
    nmt.refuses("the run has no confidence for its checkpoint", "translate", *words)


def test_an_average_that_is_used_gets_its_own(
    own: Path, nmt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def average(run: Path, *_: object) -> str:
        (folder := run / "checkpoints" / "average-00000009").mkdir()
        (model,) = run.glob("checkpoints/step-*/model.safetensors")
        weights = {name: 0.9 * tensor for name, tensor in load_file(model).items()}
        save_file(weights, folder / model.name)
        write_json(folder.with_name("best.json"), {"checkpoint": folder.name, "step": 9})
        return ""

    monkeypatch.setattr("nmt.extras.runs.after_training.average_kept", average)
    assert nmt("runs", "average", own).status == 0
    record = json.loads((own / "confidence.json").read_bytes())
    assert record["checkpoint"] == "average-00000009"


RANGES = '"features": {"mean_log_prob": [1, 0, 0], "log_src_length": [%s, 0, 0]}}'


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"a": 1}',
        "[" * 100_000,
        '{"constant": 1e999, "features": {}}',
        '{"constant": 1, "features": []}',
        '{"checkpoint": "", "search": "beam", "constant": NaN, ' + RANGES % 1,
        '{"checkpoint": "", "search": "beam", "constant": 1, ' + RANGES % "NaN",
        '{"checkpoint": "", "search": "beam", "constant": 1, ' + RANGES % '"a"',
    ],
    ids=lambda content: content[:30],
)
def test_damaged(own: Path, nmt: Run, content: str) -> None:
    (own / "confidence.json").write_text(content, encoding="utf-8")
    text = "confidence.json: damaged; `nmt runs calibrate"
    nmt.refuses(text, "translate", "--run", own, SENTENCE)
    assert "confidence.json" in nmt("runs", "check", own).err
    assert nmt("runs", "calibrate", own).status == 0
    assert nmt("translate", "--run", own, SENTENCE).status == 0


def test_least_confidence_marks_lines(own: Path, nmt: Run) -> None:
    record = json.loads((own / "confidence.json").read_text(encoding="utf-8"))
    del record["checksum"]
    # Longer sources are better here: five words and a full stop are enough.
    features = {"mean_log_prob": (0.0, -9.0, 0.0), "log_src_length": (9.0, 0.0, 9.0)}
    record |= {"constant": -9 * np.log(6.5), "features": features}
    (own / "confidence.json").write_text(json.dumps(record), encoding="utf-8")
    words = ("translate", "--run", own, "--least-confidence", "0.6")
    stdin = f"{SENTENCE}\nThe dog.\n\n{SENTENCE} The king knows.\n".encode()
    plain = nmt(*words, stdin=stdin)
    assert plain.out == nmt("translate", "--run", own, stdin=stdin).out
    (line,) = [line for line in plain.err.splitlines() if "confidence" in line]
    assert (
        line == "nmt: lines 2, 4: the confidence is below 0.6; a person should read the translation"
    )
    rows = [json.loads(row) for row in nmt(*words, "--json", stdin=stdin).out.splitlines()]
    assert [row.get("read") for row in rows] == [False, True, None, True]
    assert "the confidence is below 0.6" in rows[1]["warnings"][-1]
    confidences = [each["confidence"] for each in rows[3]["sentences"]]
    assert confidences[0] == rows[0]["confidence"] > confidences[1] == rows[3]["confidence"]


def test_the_confidence_of_a_text_is_the_lowest_of_its_sentences() -> None:
    facts: list[dict[str, object]] = [
        {"confidence": 0.9, "read": False},
        {"confidence": 0.3, "read": True},
        {},
    ]
    parts = [TranslatedText(Translation("a", facts=each), Marked("a")) for each in facts]
    tokenizers = tokenizer("en"), tokenizer("de")
    whole = join("a a a", parts, [Marked(" "), Marked(" ")], tokenizers).translation.facts
    assert (whole["confidence"], whole["read"], len(whole["sentences"])) == (0.3, True, 3)
    assert {*join("a", parts[2:], [], tokenizers).translation.facts} == {"sentences"}

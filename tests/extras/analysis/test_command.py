"""`nmt analyze`, on runs that were trained for a few seconds."""

import json
import re
import shutil
from pathlib import Path

import pytest

from nmt.data.corpus import read_sentences
from nmt.evaluation.scores import METRICS
from nmt.extras.analysis.sentences import DESCRIPTIONS
from tests import toy
from tests.commands.test_evaluate import read
from tests.conftest import Run
from tests.toy import replace, write


def test_a_comparison_of_two_runs(nmt: Run, run: Path, folder: Path) -> None:
    value = read(nmt("analyze", run, "--compare", folder / "other", "--json"))
    compared = value["comparison"]
    assert [one["metric"] for one in compared["differences"]] == [*METRICS]
    for one, own in zip(compared["differences"], value["scores"], strict=True):
        assert one["score"] == pytest.approx(own["score"])
        assert one["difference"] == pytest.approx(one["score"] - one["other"])
        assert 0 < one["p_randomisation"] <= 1
    assert compared["other"]["run"] == str(folder / "other")
    sources = read_sentences(folder / "prepared", "test", "src")
    assert compared["sentences"]
    for row in compared["sentences"]:
        assert row["source"] == sources[row["sentence"] - 1]
        assert row["output"] != row["other"]
    history = (run / "evaluation" / "history.jsonl").read_text(encoding="utf-8")
    assert json.loads(history)["comparison"] == compared


def test_a_comparison_with_the_translations_of_an_earlier_evaluation(
    nmt: Run, run: Path, tmp_path: Path
) -> None:
    assert nmt("analyze", run).status == 0
    (outputs,) = (run / "evaluation").glob("*.txt")
    earlier = Path(shutil.copy(outputs, tmp_path / "earlier.txt"))
    same = nmt("analyze", run, "--not-worse-than", earlier)
    assert (same.status, re.search(r" \+0\.00  1\.0000$", same.out, re.MULTILINE) is not None) == (
        0,
        True,
    )
    write(earlier, "one", "two")
    text = f"nmt: {earlier} has 2 lines, but there are 40 sentences to compare\n"
    nmt.refuses(text, "analyze", run, "--compare", earlier)
    beside = outputs.with_suffix(".json")
    changed = {**json.loads(beside.read_bytes()), "text_sha256": "0" * 64}
    beside.write_text(json.dumps(changed), encoding="utf-8")
    text = "translations of other sentences than the test split, according to"
    nmt.refuses(f"nmt: {outputs}: {text} {beside}\n", "analyze", run, "--compare", outputs)


def test_not_worse_than(nmt: Run, run: Path, folder: Path, tmp_path: Path) -> None:
    lines = read_sentences(folder / "prepared", "test", "tgt")
    references = write(tmp_path / "references.txt", *lines)
    failed = nmt("analyze", run, "--not-worse-than", references)
    assert failed.status == 1
    worse = r"nmt: BLEU [\d.]+ is worse than 100\.00, by [\d.]+ \(p = 0\.0001 < 0\.05\)\n"
    assert re.fullmatch(worse, failed.err)
    assert nmt("analyze", run, "--compare", references).status == 0


def test_other_directions_are_refused(nmt: Run, run: Path, tmp_path: Path) -> None:
    other = shutil.copytree(run, tmp_path / "other")
    replace(other / "config.yaml", "direction: en-de", "direction: de-en")
    error = f"nmt: {other} translates de-en, but {run} en-de; compare systems of one direction\n"
    nmt.refuses(error, "analyze", run, "--compare", other)


def test_details(nmt: Run, run: Path, folder: Path) -> None:
    sources, references = (
        read_sentences(folder / "prepared", "test", side) for side in ("src", "tgt")
    )
    value = read(nmt("analyze", run, "--details", "--json"))
    breakdown = value["breakdown"]
    for name in ("by_source_length", "by_rarest_source_word", "by_seen_in_training"):
        assert sum(row["sentences"] for row in breakdown[name]) == 40
    words = sum(len(line.replace(",", "").split()) for line in references)
    assert sum(row["words"] for row in breakdown["by_word_frequency"]) == words
    assert "attention_by_position" in breakdown
    assert len(value["best"]) == len(value["worst"]) == 10
    assert all(
        row["source"] == sources[row["sentence"] - 1] for row in [*value["best"], *value["worst"]]
    )
    assert [*value["outputs"]] == [*DESCRIPTIONS]
    assert "By source length" not in nmt("analyze", run).out
    text = nmt("analyze", run, "--details").out
    parts = ("By source length", "Attention by position in the output", "repeating outputs")
    for part in (*parts, "the 10 worst sentences, by chrF", *DESCRIPTIONS.values()):
        assert part in text


def held_out(prepared: Path) -> set[str]:
    return {text for split in ("dev", "test") for text in read_sentences(prepared, split, "src")}


def test_leaks_are_reported(nmt: Run, run: Path, folder: Path, tmp_path: Path) -> None:
    assert read(nmt("analyze", run, "--json"))["leaks"]["exact"] == 0
    held = held_out(folder / "prepared")
    trained = next(src for src, _ in toy.sentence_pairs() if src not in held)
    sources = write(tmp_path / "s", trained.upper(), "The zebra eats grass.", "x")
    references = write(tmp_path / "r", "Etwas anderes.", "Das Zebra frisst Gras.", "y")
    words = ["--sources", sources, "--references", references]
    value = read(nmt("analyze", run, *words, "--json"))
    assert value["leaks"]["exact"] == 1
    assert [score["metric"] for score in value["leaks"]["scores_without"]] == list(METRICS)
    counts = "sentences that are in the training data: 1 exactly, 0 nearly"
    assert f"\n{counts}; scores without them: BLEU " in nmt("analyze", run, *words).out


def test_leaks_of_another_run_and_into_an_earlier_run_are_reported(
    nmt: Run, run: Path, folder: Path, tmp_path: Path
) -> None:
    work = tmp_path / "resplit"
    work.mkdir()
    prepared = work / "prepared"
    split = {"split": {"dev": 20, "test": 40, "seed": 5}, "prepared": str(prepared)}
    # Another split of the same pairs: the run is trained on test sentences.
    resplit = toy.train(
        work, data=split, vocabulary={"like": str(folder / "run")}, training=toy.ONE_UPDATE
    )
    held = held_out(prepared)
    sources = read_sentences(folder / "prepared", "test", "src")
    n_leaked = sum(source not in held for source in sources)
    compared = read(nmt("analyze", run, "--compare", resplit, "--json"))["comparison"]
    found = compared["leaks_of_other"]
    assert found["exact"] == n_leaked > 0
    assert found["clean"] <= len(sources) - n_leaked
    first = shutil.copytree(resplit, tmp_path / "first")
    replace(run / "config.yaml", "start_from: null", f"start_from: {first}")
    assert read(nmt("analyze", run, "--json"))["leaks"]["exact"] == n_leaked
    shutil.rmtree(first)
    result = nmt("analyze", run)
    assert "\nsentences that are in the training data: 0 exactly" in result.out
    assert result.err.endswith(
        f"training data of an earlier run ({run}: starts from {first}, which is missing)\n"
    )


def test_missing_training_data_is_reported(
    nmt: Run, run: Path, folder: Path, tmp_path: Path
) -> None:
    files = ["--sources", write(tmp_path / "s", "The dog sees."), "--references"]
    files.append(write(tmp_path / "r", "Der Hund sieht."))
    result = nmt("analyze", run, *files, "--data", tmp_path / "nowhere")
    assert result.status == 0
    missing = f"{tmp_path / 'nowhere'}: no prepared data here; run `nmt prepare -c ...` first"
    lead = "nmt: cannot look for the test sentences in the training data of"
    assert result.err == f"{lead} {run} ({missing})\n"
    assert "in the training data" not in result.out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["a", "b"], "give one run; `nmt evaluate` scores several"),
        (
            ["a", "--compare", "b", "--not-worse-than", "c"],
            "--compare and --not-worse-than name different systems",
        ),
        (
            ["--hypotheses", "h", "--references", "r", "--details"],
            "--details needs a run, not a file of translations",
        ),
        (["a", "b", "--runs"], "No such option: --runs"),
    ],
)
def test_options_that_do_not_go_together(nmt: Run, words: list[str], text: str) -> None:
    nmt.refuses(text, "analyze", *words, status=2)

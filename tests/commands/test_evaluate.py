"""`nmt evaluate`, on runs that were trained for a few seconds."""

import hashlib
import json
import shutil
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nmt as package
from nmt.data.corpus import read_sentences
from nmt.decoding.translation import Translation
from nmt.evaluation.scores import METRICS
from nmt.extras.analysis.warnings import DESCRIPTIONS
from nmt.files import read_json, write_json
from nmt.run import system
from tests import toy
from tests.conftest import Result, Run

PACKAGE = Path(package.__file__).parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With prepared/, run/ and other/, which differs from run/ in the seed. Tests write only to
    copies.
    """
    folder = tmp_path_factory.mktemp("runs")
    toy.train(folder)
    other = tmp_path_factory.mktemp("other")
    shutil.copytree(toy.train(other, seed=2), folder / "other")
    return folder


@pytest.fixture
def run(folder: Path, tmp_path: Path) -> Path:
    """A copy of the run to write to."""
    return Path(
        shutil.copytree(
            folder / "run", tmp_path / "run", ignore=shutil.ignore_patterns("evaluation")
        )
    )


def read(result: Result) -> dict[str, Any]:
    assert result.status == 0, result.err
    value: dict[str, Any] = json.loads(result.out)
    return value


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_all_metrics_by_default_each_with_signature_and_interval(nmt: Run, run: Path) -> None:
    value = read(nmt("evaluate", run, "--json"))
    assert [score["metric"] for score in value["scores"]] == list(METRICS)
    for score in value["scores"]:
        assert "bs:1000|seed:12345" in score["signature"]
        assert score["interval"][0] <= score["score"] <= score["interval"][1]
    assert (value["lowercase_scores"], value["tokenized_scores"]) == ([], [])
    assert value["perplexity"] == pytest.approx(exp(value["loss"]))
    table = nmt("evaluate", run).out
    assert (
        f"{100 * value['exact_match']:.1f} % of the outputs equal a reference; perplexity of the "
        "references "
    ) in table
    assert len(table.splitlines()) <= 10


def test_the_loss_is_that_of_validation(nmt: Run, run: Path) -> None:
    journal = [
        json.loads(line)
        for line in (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    validated = next(line["loss"] for line in journal if line["event"] == "validation")
    assert read(nmt("evaluate", run, "--split", "dev", "--json"))["loss"] == pytest.approx(
        validated, rel=1e-5
    )


def test_the_kept_results_have_their_provenance(nmt: Run, run: Path, folder: Path) -> None:
    printed = read(nmt("evaluate", run, "--json"))
    (kept,) = (run / "evaluation").glob("*.json")
    assert json.loads(kept.read_text(encoding="utf-8")) == printed
    assert kept.name == "test-step-00000060-beam-5.json"
    assert (
        len(kept.with_suffix(".txt").read_text(encoding="utf-8").splitlines())
        == printed["sentences"]
        == 40
    )
    made_of = printed["provenance"]
    weights = run / "checkpoints" / made_of["model"]["checkpoint"] / "model.safetensors"
    assert made_of["model"]["sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    manifest = json.loads((folder / "prepared" / "manifest.json").read_text(encoding="utf-8"))
    assert made_of["data"]["content"] == manifest["content"]
    names = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
    hashes = [hashlib.sha256((PACKAGE / name).read_bytes()).hexdigest() for name in names]
    lines = "".join(f"{sha256}  {name}\n" for sha256, name in zip(hashes, names, strict=True))
    assert made_of["code"]["sha256"] == hashlib.sha256(lines.encode()).hexdigest()
    assert made_of["code"]["libraries"].keys() == {
        "torch",
        "numpy",
        "sacrebleu",
        "spacy",
        "sentencepiece",
    }


def test_the_history_keeps_all_scores(nmt: Run, run: Path) -> None:
    first, second = (
        read(nmt("evaluate", run, "--metric", metric, "--json")) for metric in ("BLEU", "TER")
    )
    lines = (run / "evaluation" / "history.jsonl").read_text(encoding="utf-8").splitlines()
    for line, printed in zip(map(json.loads, lines), (first, second), strict=True):
        assert [line[key] for key in ("scores", "loss", "perplexity")] == [
            printed[key] for key in ("scores", "loss", "perplexity")
        ]
        assert line["provenance"] == printed["provenance"]
        assert (line["step"], line["split"]) == (60, "test")
        assert line["time"].endswith("+00:00")


def test_runs_are_named_once_and_have_only_scores(nmt: Run, run: Path, folder: Path) -> None:
    assert "a run is named twice" in nmt("evaluate", "--runs", run, run).err
    result = nmt("evaluate", "--runs", run, folder / "other", "--details")
    assert result.status == 2
    assert "--runs prints only the mean and standard deviation" in result.err


def test_a_comparison_of_two_runs(nmt: Run, run: Path, folder: Path) -> None:
    value = read(
        nmt(
            "evaluate",
            run,
            "--compare",
            folder / "other",
            "--metric",
            "chrf",
            "--metric",
            "BLEU",
            "--json",
        )
    )
    assert [one["metric"] for one in value["comparison"]["differences"]] == ["chrF", "BLEU"]
    for one, own in zip(value["comparison"]["differences"], value["scores"], strict=True):
        assert one["score"] == pytest.approx(own["score"])
        assert one["difference"] == pytest.approx(one["score"] - one["other"])
        assert 0 < one["p_randomisation"] <= 1
    assert value["comparison"]["other"]["run"] == str(folder / "other")
    assert (
        value["comparison"]["other"]["provenance"]["model"]["sha256"]
        != value["provenance"]["model"]["sha256"]
    )
    changed = value["comparison"]["sentences"]
    assert changed
    sources = read_sentences(folder / "prepared", "test", "src")
    assert all(
        row["source"] == sources[row["sentence"] - 1] and row["output"] != row["other"]
        for row in changed
    )
    gains = [row["gain"] for row in changed]
    assert sorted(gains, reverse=True)[:1] == gains[:1]


@pytest.mark.slow
def test_a_comparison_with_a_lower_case_system_ignores_case(
    nmt: Run, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert nmt("evaluate", run, "--metric", "BLEU").status == 0
    (outputs,) = (run / "evaluation").glob("*.txt")
    lowered = write(
        tmp_path / "lowered.txt", *outputs.read_text(encoding="utf-8").lower().splitlines()
    )
    monkeypatch.setattr(system.System, "lowercase", property(lambda self: True))
    command = ["evaluate", run, "--metric", "BLEU", "--metric", "chrF", "--compare", lowered]
    value = read(nmt(*command, "--json"))
    assert [one["difference"] for one in value["comparison"]["differences"]] == [0, 0]
    assert all("case:lc" in one["signature"] for one in value["comparison"]["differences"])
    assert value["comparison"]["sentences"] == []
    assert f"{lowered}, ignoring case" in nmt(*command).out


def test_a_comparison_with_the_translations_of_an_earlier_evaluation(
    nmt: Run, run: Path, tmp_path: Path
) -> None:
    assert nmt("evaluate", run, "--metric", "BLEU").status == 0
    (outputs,) = (run / "evaluation").glob("*.txt")
    earlier = Path(shutil.copy(outputs, tmp_path / "earlier.txt"))
    same = nmt("evaluate", run, "--metric", "BLEU", "--not-worse-than", earlier)
    assert same.status == 0
    assert "+0.00             1.0000         1.0000" in same.out
    write(earlier, "one", "two")
    wrong = nmt("evaluate", run, "--compare", earlier)
    assert (wrong.status, wrong.out) == (1, "")
    assert wrong.err == f"nmt: {earlier} has 2 lines, but there are 40 sentences to compare\n"


def test_not_worse_than(nmt: Run, run: Path, folder: Path, tmp_path: Path) -> None:
    references = write(
        tmp_path / "references.txt", *read_sentences(folder / "prepared", "test", "tgt")
    )
    failed = nmt("evaluate", run, "--not-worse-than", references, "--metric", "BLEU")
    assert failed.status == 1
    assert "is worse than 100.00, by " in failed.err
    assert failed.err.rstrip().endswith("(p = 0.0001 < 0.05)")
    assert failed.err.count("\n") == 1
    assert (
        nmt(
            "evaluate", run, "--not-worse-than", references, "--metric", "BLEU", "--alpha", 0.00001
        ).status
        == 0
    )


def test_the_gate_lists_all_failures_in_one_line(nmt: Run, run: Path) -> None:
    failed = nmt(
        "evaluate", run, "--min-bleu", 101, "--min-chrf", 0, "--max-ter", -1, "--metric", "chrF"
    )
    assert failed.status == 1
    assert failed.err.count("\n") == 1
    bleu, ter = failed.err.removeprefix("nmt: ").split("; ")
    assert bleu.startswith("BLEU ")
    assert " is below 101, by " in bleu
    assert ter.startswith("TER ")
    assert " is above -1, by " in ter
    assert "chrF " in failed.out


@pytest.mark.slow
def test_mean_and_standard_deviation_of_runs(nmt: Run, run: Path, folder: Path) -> None:
    value = read(nmt("evaluate", "--runs", run, folder / "other", "--metric", "BLEU", "--json"))
    single = [one["scores"][0]["score"] for one in value["runs"]]
    assert len(set(single)) == 2
    (row,) = value["scores"]
    assert (row["metric"], row["score"]) == ("BLEU", pytest.approx(np.mean(single)))
    assert row["standard_deviation"] == pytest.approx(np.std(single, ddof=1))
    table = nmt("evaluate", run, folder / "other", "--runs", "--metric", "BLEU").out.splitlines()
    assert table[0].startswith(f"run 1: {run}, step 60, test split, 40 sentences")
    assert table[-1] == f"standard deviation  {row['standard_deviation']:7.2f}"
    failed = nmt("evaluate", run, folder / "other", "--runs", "--min-bleu", 101)
    assert failed.status == 1
    assert failed.err == f"nmt: BLEU {row['score']:.2f} is below 101, by {101 - row['score']:.2f}\n"


def test_an_ensemble_has_the_provenance_of_all_members(nmt: Run, run: Path, folder: Path) -> None:
    value = read(
        nmt(
            "evaluate",
            "--ensemble",
            run,
            folder / "other",
            "--metric",
            "BLEU",
            "--details",
            "--json",
        )
    )
    members = value["provenance"]["members"]
    assert [one["run"] for one in members] == [str(run), str(folder / "other")]
    for one in members:
        weights = (
            Path(one["run"]) / "checkpoints" / one["model"]["checkpoint"] / "model.safetensors"
        )
        assert one["model"]["sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    assert "attention_by_position" in value["breakdown"]
    (line,) = (
        json.loads(line)
        for line in (run / "evaluation" / "history.jsonl").read_text(encoding="utf-8").splitlines()
    )
    assert line["provenance"]["members"] == members
    table = nmt("evaluate", run, folder / "other", "--ensemble", "--metric", "BLEU").out
    assert table.startswith(
        f"{run} + {folder / 'other'}, steps 60 + 60, test split, 40 sentences, beam 5\n"
    )


@pytest.mark.slow
def test_an_ensemble_is_scored_as_it_translates(nmt: Run, run: Path, folder: Path) -> None:
    together = read(nmt("evaluate", "--ensemble", run, folder / "other", "--json"))
    outputs = [
        one.text
        for one in package.load(run, folder / "other").translate(
            read_sentences(folder / "prepared", "test", "src")
        )
    ]
    (kept,) = (run / "evaluation").glob("test-ensemble-of-2-beam-5-*.txt")
    assert kept.read_text(encoding="utf-8").splitlines() == outputs
    alone = [read(nmt("evaluate", one, "--json"))["loss"] for one in (run, folder / "other")]
    assert together["loss"] < np.mean(
        alone
    )  # Jensen: the log of the mean is above the mean of the logs


@pytest.mark.slow
def test_results_with_other_decoding_options_are_kept_apart(nmt: Run, run: Path) -> None:
    words = ["evaluate", run, "--metric", "BLEU", "--json"]
    plain = read(nmt(*words))
    assert plain["overrides"] == {}
    penalty = ["--set", "decoding.length_penalty=0.3"]
    changed = read(nmt(*words, "--beam", 2, *penalty))
    assert changed["overrides"] == {"decoding.beam": 2, "decoding.length_penalty": 0.3}
    read(nmt(*words, "--set", "decoding.beam=2"))
    read(nmt(*words, "--set", "decoding.beam=2", "--set", "decoding.length_penalty=0.4"))
    names = sorted(path.name for path in (run / "evaluation").glob("*.json"))
    assert names[-2:] == ["test-step-00000060-beam-2.json", "test-step-00000060-beam-5.json"]
    assert len(names) == 4
    lines = [
        json.loads(line)
        for line in (run / "evaluation" / "history.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [len(line["overrides"]) for line in lines] == [0, 2, 1, 2]
    table = nmt("evaluate", run, "--metric", "BLEU", *penalty).out
    assert ", beam 5, decoding.length_penalty=0.3\n" in table
    risk = ["--set", "decoding.method=mbr", "--set", "decoding.mbr.utility=bleu"]
    table = nmt("evaluate", run, "--metric", "BLEU", *risk).out
    assert ", beam 5, decoding.method=mbr, decoding.mbr.utility=bleu\n" in table
    failed = nmt("evaluate", run, "--set", "model.dropout=0.5")
    expected = (
        "nmt: --set model.dropout=0.5: for a trained run only decoding.KEY=VALUE can be set\n"
    )
    assert (failed.status, failed.err) == (1, expected)


def test_a_checkpoint_of_a_run(nmt: Run, run: Path) -> None:
    checkpoint = run / "checkpoints" / "step-00000060"
    assert (
        read(nmt("evaluate", checkpoint, "--json"))["scores"]
        == read(nmt("evaluate", run, "--json"))["scores"]
    )
    assert len([*(run / "evaluation").glob("*.txt")]) == 1


@pytest.fixture(scope="module")
def elsewhere(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on another split of the same pairs: the other's test sentences are in its training
    data.
    """
    place = tmp_path_factory.mktemp("elsewhere")
    split = {"dev": 20, "test": 40, "seed": 5}
    return toy.train(
        place, data={"split": split, "prepared": str(place / "prepared")}, training={"max_steps": 1}
    )


@pytest.mark.slow
def test_leaks_of_the_other_run_are_reported(
    nmt: Run, run: Path, elsewhere: Path, folder: Path
) -> None:
    held = {
        text
        for split in ("dev", "test")
        for text in read_sentences(elsewhere.parent / "prepared", split, "src")
    }
    sources = read_sentences(folder / "prepared", "test", "src")
    words = ["evaluate", run, "--compare", elsewhere, "--metric", "BLEU"]
    found = read(nmt(*words, "--json"))["comparison"]["leaks_of_other"]
    assert found["exact"] == sum(source not in held for source in sources) > 0
    assert found["clean"] <= len(sources) - found["exact"]
    table = nmt(*words).out
    assert (
        f"sentences in the other system's training data: {found['exact']} exactly, "
        f"{found['near']} nearly"
    ) in table
    if found["clean"]:
        assert [one["metric"] for one in found["differences_without"]] == ["BLEU"]
        assert (
            f"on the {found['clean']} sentences that are in neither system's training data" in table
        )
    same = read(nmt("evaluate", run, "--compare", folder / "other", "--metric", "BLEU", "--json"))[
        "comparison"
    ]
    assert "leaks_of_other" not in same


def test_missing_training_data_of_the_other_run_is_reported(
    nmt: Run, run: Path, elsewhere: Path, tmp_path: Path
) -> None:
    moved = shutil.copytree(elsewhere, tmp_path / "moved")
    config = (moved / "config.yaml").read_text(encoding="utf-8")
    nowhere = tmp_path / "nowhere"
    (moved / "config.yaml").write_text(
        config.replace(str(elsewhere.parent / "prepared"), str(nowhere)), encoding="utf-8"
    )
    result = nmt("evaluate", run, "--compare", moved, "--metric", "BLEU")
    assert result.status == 0
    missing = f"{nowhere}: no prepared data here; run `nmt prepare -c ...` first"
    assert (
        result.err.splitlines()[-1]
        == f"nmt: cannot look for the test sentences in the training data of {moved} ({missing})"
    )


def test_other_directions_and_other_sentences_are_refused(
    nmt: Run, run: Path, tmp_path: Path
) -> None:
    other = shutil.copytree(run, tmp_path / "other")
    config = (other / "config.yaml").read_text(encoding="utf-8")
    (other / "config.yaml").write_text(
        config.replace("direction: en-de", "direction: de-en"), encoding="utf-8"
    )
    failed = nmt("evaluate", run, "--compare", other)
    assert (failed.status, failed.out) == (1, "")
    assert (
        failed.err.splitlines()[-1]
        == f"nmt: {other} translates de-en, but {run} en-de; compare systems of one direction"
    )
    assert nmt("evaluate", run, "--metric", "BLEU").status == 0
    (kept,) = (run / "evaluation").glob("test-*.txt")
    beside = kept.with_suffix(".json")
    beside.write_text(
        json.dumps({**json.loads(beside.read_bytes()), "text_sha256": "0" * 64}), encoding="utf-8"
    )
    failed = nmt("evaluate", run, "--compare", kept)
    assert (failed.status, failed.out) == (1, "")
    assert failed.err == (
        f"nmt: {kept}: translations of other sentences than the test split, according to {beside}\n"
    )


def test_a_run_on_other_text_with_several_references(nmt: Run, run: Path, tmp_path: Path) -> None:
    sources = write(tmp_path / "news.en", "The dog sees the tree.", "The man knows the king.")
    references = write(
        tmp_path / "news.de",
        "Der Hund sieht den Baum.\tJa, der Hund sieht den Baum.",
        "Der Mann kennt den König.\tJa, der Mann kennt den König.",
    )
    value = read(
        nmt(
            "evaluate",
            run,
            "--sources",
            sources,
            "--references",
            references,
            "--columns",
            2,
            "--json",
        )
    )
    assert value["sentences"] == 2
    assert value["split"] is None
    assert "nrefs:2" in value["scores"][0]["signature"]
    (kept,) = (run / "evaluation").glob("news-*.json")
    assert value["text_sha256"].startswith(kept.name.split("-")[1])


def test_tokenized_scores_stand_apart_and_are_marked(nmt: Run, run: Path, tmp_path: Path) -> None:
    value = read(nmt("evaluate", run, "--tokenized", "--json"))
    (tokenized,) = value["tokenized_scores"]
    assert tokenized["metric"] == "tokenised BLEU"
    assert "tok:none" in tokenized["signature"]
    assert "words:words,spacy:" in tokenized["signature"]
    assert "lang:de" in tokenized["signature"]
    assert "tokenised BLEU" not in [score["metric"] for score in value["scores"]]
    assert "do not compare with the scores above" in nmt("evaluate", run, "--tokenized").out
    hypotheses = write(tmp_path / "h", "der Hund sieht , was er will .")
    references = write(tmp_path / "r", "Der Hund sieht , was er mag .")
    words = [
        "--hypotheses",
        hypotheses,
        "--references",
        references,
        "--tokenized",
        "--lowercase",
        "--json",
    ]
    cased, uncased = read(nmt("evaluate", *words))["tokenized_scores"]
    assert cased["signature"].endswith("|words:as they stand")
    assert "case:lc" in uncased["signature"]
    assert cased["score"] < uncased["score"]


def test_bleu_in_the_words_of_moses(nmt: Run, run: Path, folder: Path, tmp_path: Path) -> None:
    value = read(nmt("evaluate", run, "--moses", "de", "--metric", "BLEU", "--json"))
    (moses,) = value["tokenized_scores"]
    assert moses["metric"] == "Moses BLEU"
    assert "Moses tokenizer de" in moses["signature"]
    assert moses["interval"][0] <= moses["score"] <= moses["interval"][1]
    result = nmt("evaluate", run, "--moses", "en")
    assert (result.status, result.err) == (1, f"nmt: {run} translates en-de: use --moses de\n")

    several = read(
        nmt(
            "evaluate",
            "--runs",
            run,
            folder / "other",
            "--moses",
            "de",
            "--metric",
            "BLEU",
            "--json",
        )
    )
    assert [row["metric"] for row in several["scores"]] == ["BLEU", "Moses BLEU"]
    assert several["runs"][0]["tokenized_scores"] == [moses]

    hypotheses = write(tmp_path / "h", "„Der Hund“ sieht ein T-Shirt.")
    references = write(tmp_path / "r", '"der Hund" sieht ein T-Shirt .')
    (same,) = read(
        nmt(
            "evaluate",
            "--hypotheses",
            hypotheses,
            "--references",
            references,
            "--moses",
            "de",
            "--json",
        )
    )["tokenized_scores"]
    assert same["score"] == pytest.approx(100)


def test_tokenized_bleu_separates_punctuation(
    nmt: Run, run: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outputs lack only the full stop, so that all tokens are right. Without tokenizing, every
    last word would be wrong.
    """
    references = [
        line.removesuffix(".") for line in read_sentences(folder / "prepared", "test", "tgt")
    ]
    monkeypatch.setattr(
        system.System, "translate", lambda self, text: [*map(Translation, text.sources, references)]
    )
    brevity = exp(
        1 - 1 / np.mean([len(line.split()) / (len(line.split()) + 1) for line in references])
    )
    (tokenized,) = read(nmt("evaluate", run, "--tokenized", "--metric", "BLEU", "--json"))[
        "tokenized_scores"
    ]
    assert tokenized["score"] == pytest.approx(100 * brevity, rel=0.05)


def test_a_warning_about_text_that_looks_tokenized(nmt: Run, tmp_path: Path) -> None:
    hypotheses, references = (
        write(tmp_path / name, *["Der Hund sieht ihn ."] * 120, "Ja.") for name in "hr"
    )
    words = ["evaluate", "--hypotheses", hypotheses, "--references", references, "--metric", "BLEU"]
    warning = "nmt: 120 outputs end in ' .' and look tokenized; the metrics need detokenized text\n"
    assert nmt(*words, "--compare", references).err == warning
    assert nmt(*words, "--tokenized").err == ""


def test_ignoring_case(nmt: Run, run: Path) -> None:
    value = read(nmt("evaluate", run, "--lowercase", "--metric", "BLEU", "--json"))
    assert "case:lc" in value["lowercase_scores"][0]["signature"]
    assert "ignoring case" in nmt("evaluate", run, "--lowercase", "--metric", "BLEU").out


def test_references_in_several_files(nmt: Run, tmp_path: Path) -> None:
    hypotheses, one, two = (
        write(tmp_path / name, text)
        for name, text in (("h", "Ja, gut."), ("a", "Nein."), ("b", "Ja, gut."))
    )
    for words in (["--references", one, two], ["--references", one, "--references", two]):
        value = read(nmt("evaluate", "--hypotheses", hypotheses, *words, "--json"))
        assert "nrefs:2" in value["scores"][0]["signature"]
        assert value["exact_match"] == 1


def test_files_after_the_first_reference_are_references_and_folders_are_runs(
    nmt: Run, run: Path, tmp_path: Path
) -> None:
    sources, one, two = (
        write(tmp_path / name, text)
        for name, text in (("s", "The dog sees."), ("a", "Der Hund sieht."), ("b", "Der Hund."))
    )
    for words in ([run, "--references", one, two], ["--references", one, two, run]):
        value = read(nmt("evaluate", "--sources", sources, *words, "--metric", "BLEU", "--json"))
        assert "nrefs:2" in value["scores"][0]["signature"]
        assert value["run"] == str(run)
    mixed = nmt("evaluate", run, "--hypotheses", one, "--references", two)
    assert (mixed.status, mixed.out) == (2, "")
    assert "give a run or --hypotheses, not both" in mixed.err
    for words, message in (
        (["--hypotheses", one], "--hypotheses needs --references"),
        ([run, "--sources", sources], "--sources needs --references"),
        ([run, "--references", one], "--references needs --sources"),
    ):
        incomplete = nmt("evaluate", *words)
        assert (incomplete.status, incomplete.out) == (2, "")
        assert message in incomplete.err
    missing = nmt("evaluate", "--hypotheses", one, "--references", two, tmp_path / "c")
    assert missing.err == f"nmt: {tmp_path / 'c'}: no such file\n"


@pytest.mark.parametrize(
    ("hypotheses", "references", "options", "message"),
    [
        (["a", "b"], ["a"], [], "{r} has 1 lines, but {h} has 2"),
        ([""], ["a"], [], "{h} has 1 lines, all of them empty; there is nothing to score"),
        ([], ["a"], [], "{h} is empty; there is nothing to score"),
        (["a"], [" "], [], "{r} has 1 lines, all of them empty; there is nothing to score"),
        (
            ["a", "b"],
            ["a\tb", "a"],
            ["--columns", 2],
            "{r}, line 2: 1 columns, expected 2 references separated by tabs",
        ),
        (
            ["a"],
            ["a"],
            ["--metric", "METEOR"],
            "METEOR: not a metric; choose from BLEU, chrF, chrF++, TER",
        ),
        (["a"], ["a"], ["--compare", "nowhere.txt"], "nowhere.txt: no such file"),
    ],
)
def test_files_that_cannot_be_scored(
    nmt: Run,
    tmp_path: Path,
    hypotheses: list[str],
    references: list[str],
    options: list[Any],
    message: str,
) -> None:
    h, r = write(tmp_path / "h", *hypotheses), write(tmp_path / "r", *references)
    result = nmt("evaluate", "--hypotheses", h, "--references", r, *options)
    assert (result.status, result.out) == (1, "")
    assert result.err == f"nmt: {message.format(h=h, r=r)}\n"


def test_an_error_overwrites_no_results(nmt: Run, run: Path, tmp_path: Path) -> None:
    assert nmt("evaluate", run).status == 0
    before = {path: path.read_bytes() for path in (run / "evaluation").iterdir()}
    for words in (
        ["--metric", "METEOR"],
        ["--compare", tmp_path / "nowhere"],
        ["--data", tmp_path],
    ):
        failed = nmt("evaluate", run, *words)
        assert (failed.status, failed.out) == (1, "")
        assert failed.err.count("\n") == 1
    assert {path: path.read_bytes() for path in (run / "evaluation").iterdir()} == before


@pytest.mark.parametrize(
    "words",
    [
        ["a", "b"],
        ["--runs", "a"],
        ["--ensemble", "a"],
        ["--ensemble", "--runs", "a", "b"],
        ["--hypotheses", "h", "--references", "r", "--set", "decoding.beam=2"],
        ["--runs", "a", "b", "--not-worse-than", "c"],
        ["--runs", "a", "b", "--report", "c"],
        ["a", "--sources", "s"],
        ["a", "--references", "r"],
        ["--hypotheses", "h"],
        ["a", "--compare", "b", "--not-worse-than", "c"],
        ["a", "--alpha", "2"],
        ["--hypotheses", "h", "--references", "r", "--details"],
    ],
)
def test_options_that_do_not_go_together(nmt: Run, words: list[str]) -> None:
    result = nmt("evaluate", *words)
    assert (result.status, result.out) == (2, "")


@pytest.mark.slow
def test_an_average_is_scored_like_any_other_checkpoint(nmt: Run, tmp_path: Path) -> None:
    training = {
        "max_steps": 6,
        "validate_every": 2,
        "validation_pairs": 5,
        "keep_best": 3,
        "metric": "loss",
    }
    run = toy.train(tmp_path, training=training)
    best = run / "checkpoints" / "best.json"
    pointed = read_json(best)
    folder = run / "checkpoints" / "average-00000006"
    folder.mkdir()
    shutil.copy(run / "checkpoints" / pointed["checkpoint"] / "model.safetensors", folder)
    pointed["checkpoint"] = pointed["kept"][0]["checkpoint"] = folder.name
    write_json(best, pointed)
    value = read(nmt("evaluate", run, "--json"))
    assert (value["step"], value["provenance"]["model"]["checkpoint"]) == (6, "average-00000006")
    assert "average up to step 6, test split" in nmt("evaluate", run).out


def test_details(nmt: Run, run: Path, folder: Path, tmp_path: Path) -> None:
    sources, references = (
        read_sentences(folder / "prepared", "test", side) for side in ("src", "tgt")
    )
    alignments = write(tmp_path / "alignments", *("0-0 1-1" for _ in sources))
    value = read(nmt("evaluate", run, "--details", "--alignments", alignments, "--json"))
    breakdown = value["breakdown"]
    for name in ("by_source_length", "by_rarest_source_word", "by_seen_in_training"):
        assert sum(row["sentences"] for row in breakdown[name]) == 40
    words = sum(len(line.replace(",", "").split()) for line in references)
    assert sum(row["words"] for row in breakdown["by_word_frequency"]) == words
    tokens = sum(row["tokens"] for row in breakdown["exposure_bias"])
    loss = sum(row["tokens"] * row["teacher-forced"] for row in breakdown["exposure_bias"]) / tokens
    assert loss == pytest.approx(value["loss"], rel=1e-5)
    assert breakdown["exposure_bias"][0]["gap"] == pytest.approx(0, abs=1e-5)
    assert {
        "attention_by_position",
        "attention_coverage",
        "attention_neglected",
    } <= breakdown.keys()
    assert 0 <= value["alignment_error_rate"] <= 1
    assert value["aligned_sentences"] == 40
    assert len(value["best"]) == len(value["worst"]) == 10
    assert all(
        row["source"] == sources[row["sentence"] - 1] for row in [*value["best"], *value["worst"]]
    )
    assert [*value["outputs"]] == [*DESCRIPTIONS]
    assert "alignment error rate " in nmt("evaluate", run, "--alignments", alignments).out
    text = nmt("evaluate", run, "--details").out
    for part in (
        "By source length",
        "Exposure bias: loss by position",
        "the 10 worst sentences, by chrF",
        "repeating outputs",
        *DESCRIPTIONS.values(),
    ):
        assert part in text
    assert "By source length" not in nmt("evaluate", run).out


def test_leaks_are_reported(nmt: Run, run: Path, folder: Path, tmp_path: Path) -> None:
    manifest = json.loads((folder / "prepared" / "manifest.json").read_text(encoding="utf-8"))
    assert all(shared == 0 for both in manifest["overlap"].values() for shared in both.values())
    assert read(nmt("evaluate", run, "--json"))["leaks"]["exact"] == 0
    pairs = [
        line.split("\t") for line in (folder / "pairs.tsv").read_text(encoding="utf-8").splitlines()
    ]
    held = {
        text
        for split in ("dev", "test")
        for text in read_sentences(folder / "prepared", split, "src")
    }
    trained = next(pair for pair in pairs if pair[0] not in held)
    sources = write(tmp_path / "s", trained[0].upper(), "The zebra eats grass.", "x")
    references = write(tmp_path / "r", "Etwas anderes.", "Das Zebra frisst Gras.", "y")
    value = read(nmt("evaluate", run, "--sources", sources, "--references", references, "--json"))
    assert value["leaks"]["exact"] == 1
    assert [score["metric"] for score in value["leaks"]["scores_without"]] == list(METRICS)
    table = nmt("evaluate", run, "--sources", sources, "--references", references).out
    assert (
        "\nsentences that are in the training data: 1 exactly, 0 nearly; scores without them: BLEU "
        in table
    )


def test_leaks_into_an_earlier_run_are_reported(
    nmt: Run, run: Path, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "first").mkdir()
    data = {
        "split": {"dev": 20, "test": 40, "seed": 5},
        "prepared": str(tmp_path / "first" / "prepared"),
    }
    first = toy.train(
        tmp_path / "first",
        data=data,
        vocabulary={"like": str(folder / "run")},
        training={"max_steps": 1},
    )
    text = (run / "config.yaml").read_text(encoding="utf-8")
    (run / "config.yaml").write_text(
        text.replace("start_from: null", f"start_from: {first}"), encoding="utf-8"
    )
    held = {
        text
        for split in ("dev", "test")
        for text in read_sentences(tmp_path / "first" / "prepared", split, "src")
    }
    sources = read_sentences(folder / "prepared", "test", "src")
    words = ["evaluate", run, "--metric", "BLEU"]
    assert (
        read(nmt(*words, "--json"))["leaks"]["exact"]
        == sum(source not in held for source in sources)
        > 0
    )
    shutil.rmtree(first)
    result = nmt(*words)
    assert "\nsentences that are in the training data: 0 exactly" in result.out
    assert result.err.endswith(
        f"training data of an earlier run ({run}: starts from {first}, which is missing)\n"
    )


def test_missing_training_data_is_reported(
    nmt: Run, run: Path, folder: Path, tmp_path: Path
) -> None:
    sources, references = (
        write(tmp_path / "s", "The dog sees."),
        write(tmp_path / "r", "Der Hund sieht."),
    )
    words = [
        "evaluate",
        run,
        "--sources",
        sources,
        "--references",
        references,
        "--data",
        tmp_path / "nowhere",
    ]
    result = nmt(*words)
    assert result.status == 0
    missing = f"{tmp_path / 'nowhere'}: no prepared data here; run `nmt prepare -c ...` first"
    assert result.err == (
        f"nmt: cannot look for the test sentences in the training data ({missing}); name the "
        "prepared folder with --data\n"
    )
    assert "in the training data" not in result.out


def test_alignments_of_other_sentences(nmt: Run, run: Path, tmp_path: Path) -> None:
    alignments = write(tmp_path / "alignments", "0-0")
    result = nmt("evaluate", run, "--details", "--alignments", alignments)
    assert (result.status, result.out) == (1, "")
    assert result.err == f"nmt: {alignments} has 1 lines, but there are 40 sentences to align\n"

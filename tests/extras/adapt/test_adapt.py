"""`nmt adapt` on the command line; how far it goes from the base to the trained weights."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.commands import prepare, train
from nmt.data.corpus import read_sentences
from nmt.data.manifest import load_manifest
from nmt.errors import NmtError
from nmt.extras.adapt import adaptation, choice
from nmt.extras.adapt.choice import (
    SHORTER,
    Change,
    Estimate,
    Scores,
    Sets,
    best_share,
    between,
    remarks,
    search,
)
from nmt.extras.init import proposal
from nmt.run.folder import JOURNAL_FILE, find_checkpoint, load_run_config, lock_run
from nmt.run.journal import read_events
from nmt.run.weights import load_model
from nmt.training import dry_run, loop
from tests import toy
from tests.conftest import Run


@pytest.fixture
def work(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a run and a memory; few updates, and few samples."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(proposal, "MIN_STEPS", 20)
    monkeypatch.setattr(adaptation, "ADAPTED", [(10, 0.9, 1), (10**9, 0.8, 1)])
    monkeypatch.setattr(prepare, "worker_count", lambda _: 1)  # processes take time to start
    monkeypatch.setattr(dry_run, "N_TIMED_BATCHES", 2)
    monkeypatch.setattr(choice, "N_RESAMPLES", 50)
    toy.write_table(tmp_path / "memory.tsv", toy.MEMORY)
    shutil.copytree(folder / "run", tmp_path / "run")
    return tmp_path


ADAPT = ("adapt", "run", "--with", "memory.tsv", "-o", "runs/mine", "-q")


def left_in(folder: Path) -> set[str]:
    """The names of all files, but not of the lock that stays, as with `nmt train`."""
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return names - {"runs/.mine.lock"}


def read_known(prepared: Path) -> list[tuple[str, str]]:
    """The pairs that a run was trained on."""
    held_out = {*read_sentences(prepared, "dev", "src"), *read_sentences(prepared, "test", "src")}
    return [pair for pair in toy.sentence_pairs() if pair[0] not in held_out]


def weights(run: str) -> list[Any]:
    model = load_model(Path(run), find_checkpoint(Path(run)))
    return [parameter.tolist() for parameter in model.parameters()]


def test_adapt(nmt: Run, folder: Path, work: Path) -> None:
    leaked = [read_sentences(folder / "prepared", "test", side)[0] for side in ("src", "tgt")]
    known = read_known(folder / "prepared")
    toy.write_table(work / "memory.tsv", [*toy.MEMORY, (leaked[0], leaked[1]), *known[:100]])
    rows = [line.split()[:2] for line in nmt.prints(*ADAPT, "--max-loss", 100).splitlines()]
    assert [row for row in rows if row[0] in ("general,", "memory,")] == [
        ["general,", "40"],
        ["general,", "40"],
        ["memory,", "39"],
        ["memory,", "39"],
    ]
    assert not (work / "runs/.mine.adapting").exists()
    manifest = load_manifest(Path("data/prepared/mine"))
    assert manifest["counts"]["dropped"]["in dev or test of another"] == 1
    assert not any(any(counts.values()) for counts in manifest["overlap"].values())
    held_out = {*read_sentences(Path("data/prepared/mine"), "test", "src")}
    assert held_out.isdisjoint(src for src, _ in known)
    result = nmt("translate", "--run", "runs/mine", "A dog sees a tree.")
    assert (result.status, "graphs" in result.err) == (0, False)
    assert nmt("evaluate", "runs/mine").status == 0
    *_, event = read_events(Path("runs/mine") / JOURNAL_FILE)
    assert (event["event"], event["base"]) == ("adaptation", "run")
    assert event["share"] in (1.0, *SHORTER)
    assert "share: 0.8" in Path("runs/mine/config.yaml").read_text()
    assert Path("runs/mine/adaptation.png").exists()
    # An adapted run is adapted again from its base.
    Path("memory.tsv").rename("our memory.tsv")
    words = ("adapt", "runs/mine", "--with", "our memory.tsv", "--max-loss", 100)
    result = nmt(*words)
    assert "runs/mine is adapted from run; this starts there too" in result.out
    assert load_run_config(Path("runs/run-our-memory")).training.start_from == Path("run")
    assert weights("runs/run-our-memory") == weights("runs/mine")
    shutil.rmtree("run")
    assert "runs/mine: starts from run, which is missing" in nmt(*words, "-o", "runs/x").err


def test_it_says_how_long_it_takes(nmt: Run, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptation, "best_share", lambda *_: 1.0)
    words = (*ADAPT[:-1], "--max-loss", 100, "--threads", 1)
    out = nmt(*words, "--set", "training.max_steps=3").out
    estimate = r"\nabout \d+ s for 3 updates, then at most \d+ s to choose the weights\n"
    assert re.search(estimate, out)
    assert re.search(
        r"\ntrained for 3 updates, \d+ s\nBLEU on dev\nshare of the way  general   memory\n0 % ",
        out,
    )
    assert "\n90 % " in out  # a shorter way is measured, too
    out = nmt(*words, "--minutes", 0.02, "-o", "runs/timed").out
    assert re.search(r"\nabout 1 s for \d+ updates, then ", out)
    training = load_run_config(Path("runs/timed")).training
    assert (training.max_minutes, training.max_steps, training.threads) == (0.02, None, 1)


def killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_an_interrupted_adaptation_ends_with_the_same_run(
    nmt: Run, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed as it prepares, trains, chooses and writes. Wrong options lose nothing."""
    assert nmt(*ADAPT, "--max-loss", 100).status == 0
    whole = weights("runs/mine")
    shutil.rmtree("runs/mine")
    shutil.rmtree("data/prepared/mine")
    for place, name in (
        (adaptation, "_configure"),
        (train, "run"),
        (Sets, "translate"),
        (adaptation, "create_run"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, killed)
            assert nmt(*ADAPT, "--max-loss", 100).status == 130
    before = left_in(work)
    text = "runs/.mine.adapting: an interrupted adaptation had other"
    nmt.refuses(text, *ADAPT, "--mix", 0.9)
    nmt.refuses("nothing: no such file", *ADAPT, "--general", "nothing")
    with lock_run(Path("runs/mine")):
        nmt.refuses("another training is running in it", *ADAPT)
    assert left_in(work) == before
    assert nmt(*ADAPT, "--max-loss", 100).status == 0
    assert weights("runs/mine") == whole


def test_nothing_fits(nmt: Run, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sets, "bleu", lambda *_: {"general": 30.0, "memory": 10.0})
    before = left_in(work)
    text = "no weights gain BLEU on the memory, so no run was written; name more pairs"
    nmt.refuses(text, *ADAPT, "--max-loss", 0)
    assert left_in(work) == before


def test_what_costs_too_much_is_trained_once(
    nmt: Run, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = iter([(30.0, 10.0), *[(28.5, 20.0)] * 5] * 3)
    names = "general", "memory"
    monkeypatch.setattr(Sets, "bleu", lambda *_: dict(zip(names, next(scores), strict=True)))
    text = "1.5 general for +10.0 of the memory: to take it, repeat the command with --max-loss 1.5"
    nmt.refuses(text, *ADAPT, "--max-loss", 1)
    text = "if you do not want it, delete runs/.mine.adapting and data/prepared/mine\n"
    nmt.refuses(text, *ADAPT, "--max-loss", 1)
    assert not Path("runs/mine").exists()
    monkeypatch.setattr(loop, "train_step", killed)
    assert nmt(*ADAPT, "--max-loss", 1.5).status == 0
    assert not Path("runs/.mine.adapting").exists()


def test_general_pairs_of_a_file(nmt: Run, folder: Path, work: Path) -> None:
    """The run may have come without its data."""
    config = Path("run/config.yaml")
    config.write_text(config.read_text().replace(str(folder / "prepared"), "elsewhere"))
    before = left_in(work)
    text = (
        "run: the data that it was trained on, elsewhere, is not here; name other pairs with "
        "--general, on which it must not become worse\n"
    )
    nmt.refuses(text, *ADAPT)
    assert left_in(work) == before
    opposite = toy.configure(work / "memory.tsv", data={"direction": "de-en"})
    prepare.run(opposite, work / "opposite", progress=False)
    text = "--general opposite: is de-en, but run translates en-de; name data of that direction"
    nmt.refuses(text, *ADAPT, "--general", "opposite")
    toy.write_table(work / "general.tsv", toy.sentence_pairs()[:199])
    text = "general.tsv: has 199 pairs; --general needs at least"
    nmt.refuses(text, *ADAPT, "--general", "general.tsv")
    toy.write_table(work / "general.tsv", toy.sentence_pairs())
    assert nmt(*ADAPT, "--general", "general.tsv", "--max-loss", 100).status == 0
    assert read_sentences(Path("data/prepared/mine-general"), "dev", "src")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--mix", "1"), "--mix 1: must be above 0 and below 1, for example 0.8"),
        (("-o", "run"), "run: exists already; name another run with -o"),
    ],
)
def test_wrong_options(nmt: Run, work: Path, words: tuple[str, ...], text: str) -> None:
    before = left_in(work)
    nmt.refuses(text, *ADAPT, *words)
    assert left_in(work) == before


def test_unusable_pairs_leave_nothing(nmt: Run, work: Path) -> None:
    before = left_in(work)
    toy.write_table(work / "memory.tsv", toy.MEMORY[:20])
    nmt.refuses("memory.tsv: has 20 pairs; fine-tuning needs at least 40", *ADAPT)
    toy.write_table(work / "memory.tsv", toy.sentence_pairs()[:100])
    nmt.refuses("but only 0 share no sentence with the others", *ADAPT)
    (work / "memory.tsv").unlink()
    nmt.refuses("memory.tsv: no such file", *ADAPT)
    assert left_in(work) == before - {"memory.tsv"}


# The way from the base to the trained weights, and how far to go

BASE = {"general": 30.0, "memory": 10.0}


def results(*pairs: tuple[float, float]) -> dict[float, Scores]:
    """Of shares of the way: 1, 1/2, 1/4 and so on."""
    return {0.5**i: {"general": pair[0], "memory": pair[1]} for i, pair in enumerate(pairs)}


@given(st.floats(0, 10), st.floats(0, 10))
def test_the_search_finds_the_longest_way_within_the_loss(slope: float, loss: float) -> None:
    found = search(
        lambda share: {"general": 30 - slope * share, "memory": share}, 30 - loss, is_better
    )
    assert 1.0 in found
    longest = min(1.0, loss / slope) if slope else 1.0
    fitting = [share for share, bleu in found.items() if bleu["general"] >= 30 - loss]
    assert longest - max(fitting, default=0.0) <= 1 / 16 + 1e-9
    assert len(found) <= 5


def test_the_search_goes_back_as_long_as_the_memory_loses_nothing_but_chance() -> None:
    found = search(
        lambda share: {"general": 30 - share, "memory": 10 + share},
        20,
        lambda one, other: one - other > 0.15,
    )
    assert [*found] == [1.0, 0.9, 0.8]
    assert best_share(found, BASE, 1, lambda one, other: one - other > 0.15) == 0.9


def test_nothing_within_the_loss() -> None:
    text = re.escape(
        "the next best exchange on dev is 2.0 general for +23.1 of the memory: to take it, repeat "
        "the command with --max-loss 2; it need not train again"
    )
    with pytest.raises(NmtError, match=text):
        best_share(results((28.0, 33.1), (28.5, 15.0)), BASE, 1, is_better)


def is_better(one: float, other: float) -> bool:
    """No difference is chance."""
    return True


def test_what_may_be_chance_decides_for_the_general_sentences() -> None:
    measured = results((29.2, 20.0), (29.6, 19.8), (29.9, 15.0))
    assert best_share(measured, BASE, 1, is_better) == 1.0
    assert best_share(measured, BASE, 1, lambda one, other: other == 0.25) == 0.5


scores = st.floats(0, 100)


@given(st.lists(st.tuples(scores, scores), min_size=1, max_size=5), scores)
def test_no_chosen_share_breaks_a_promise(pairs: list[tuple[float, float]], loss: float) -> None:
    measured = results(*pairs)
    fitting = [memory for general, memory in pairs if 30 - general <= loss and memory > 10]
    if fitting:
        assert measured[best_share(measured, BASE, loss, is_better)]["memory"] == max(fitting)
    else:
        with pytest.raises(NmtError):
            best_share(measured, BASE, loss, is_better)


def test_what_the_test_sets_do_not_show_is_said() -> None:
    def changes(general: float, low: float) -> list[Change]:
        zero = Estimate(0, 0, 0)
        return [
            Change("general", 9, "BLEU", zero, zero, Estimate(general, general - 1, general + 1)),
            Change("memory", 9, "BLEU", zero, zero, Estimate(low + 1, low, low + 2)),
        ]

    assert [*remarks(changes(-0.9, 0.1), 1)] == []
    loss, gain = remarks(changes(-1.1, -0.1), 1), "the gain on the memory's test set may be chance"
    assert [text.partition(":")[0] for text in loss] == [
        gain,
        "on the general test set, the loss is larger than --max-loss 1",
    ]


def test_weights_between_base_and_trained(folder: Path) -> None:
    base, trained = (
        load_model(run, find_checkpoint(run)) for run in (folder / "run", folder / "other")
    )
    model = between(base, trained, 0.25)
    for new, start, end in zip(
        model.parameters(), base.parameters(), trained.parameters(), strict=True
    ):
        torch.testing.assert_close(new, 0.75 * start + 0.25 * end)
    whole = between(base, trained, 1.0)
    assert all(map(torch.equal, whole.parameters(), trained.parameters()))

"""A lexicon that a run learns, and how translating uses it."""

import re
from pathlib import Path

import nmt as package
from nmt.config.schema import AttentionConfig
from nmt.decoding.unknown_words import UNKNOWN
from nmt.extras.lexicon import command as lexicon
from nmt.extras.lexicon.lexicon import Lexicon
from nmt.run.folder import load_run_config, write_run_config
from tests.conftest import Run
from tests.decoding.test_unknown_words import changed, trained

__all__ = ["trained"]  # a fixture


def test_the_lexicon_is_learned_and_used(trained: Path, tmp_path: Path, nmt: Run) -> None:
    run = changed(trained, tmp_path)
    result = nmt("lexicon", run, "--pairs", 400)
    assert result.status == 0
    path = run / "lexicon.tsv"
    before, entries = path.read_bytes(), Lexicon.load(path).entries
    number = sum(map(len, entries.values()))
    assert re.fullmatch(
        rf"{path}: {number} translations of {len(entries)} source tokens, from 400 pairs in "
        r"\d+ s\n",
        result.out,
    )
    assert entries[UNKNOWN][0].token == UNKNOWN
    lexicon.command(run, pairs=400)
    assert path.read_bytes() == before
    # A user adds a word by hand: it is translated now, not copied.
    path.write_text(path.read_text(encoding="utf-8") + "zaphod\tSafran\t1\t1\n", encoding="utf-8")
    (translation,) = package.load(run).translate(["Zaphod sees the dog."])
    assert translation.text == "Safran sieht den hund."
    assert [one.origin for one in translation.replaced] == ["lexicon"]
    (translation,) = package.load(changed(run, tmp_path / "without", lexicon=False)).translate(
        ["Zaphod sees the dog."]
    )
    assert translation.text == "Zaphod sieht den hund."


def test_missing_data_and_models_without_attention(trained: Path, tmp_path: Path, nmt: Run) -> None:
    gone = nmt("lexicon", trained, "--data", tmp_path)
    assert (gone.status, gone.err) == (
        1,
        f"nmt: {tmp_path}: no prepared data here; run `nmt prepare -c ...` first\n",
    )
    run = changed(trained, tmp_path)
    config = load_run_config(run)
    blind = config.model.model_copy(update={"attention": AttentionConfig(score="none")})
    write_run_config(run, config.model_copy(update={"model": blind}))
    refused = nmt("lexicon", run)
    assert (refused.status, refused.err) == (
        1,
        f"nmt: {run}: the model has no attention (model.attention.score: none) to learn a lexicon "
        "from; add --aligner\n",
    )
    assert nmt("lexicon", run, "--aligner").status == 0
    entries = Lexicon.load(run / "lexicon.tsv")
    assert [entries.best(word) for word in ("dog", "sees", "tree")] == ["hund", "sieht", "baum"]


def test_a_shortlist_needs_the_lexicon_and_then_translates(
    trained: Path, tmp_path: Path, nmt: Run
) -> None:
    run = changed(trained, tmp_path, shortlist=5)
    refused = nmt("translate", "--run", run, "Zaphod sees the dog.")
    assert refused.err == (
        f"nmt: decoding.shortlist: 5 needs the lexicon of the run; `nmt lexicon {run}` makes it\n"
    )
    assert refused.status == 1
    lexicon.command(run)
    result = nmt("translate", "--run", run, "Zaphod sees the dog.", "The tree finds McXyz.")
    assert result.out.splitlines() == ["Zaphod sieht den hund.", "der baum findet McXyz."]
    (run / "lexicon.tsv").write_text("nonsense\n", encoding="utf-8")
    damaged = nmt("translate", "--run", run, "Zaphod sees the dog.")
    assert (damaged.status, damaged.out) == (1, "")
    assert damaged.err.startswith(f"nmt: {run / 'lexicon.tsv'}, line 1: expected 'source")

"""nmt.evaluation.analysis: what of a text was in the training data, where that has unknown words."""

from pathlib import Path

from nmt.commands import prepare
from nmt.data.corpus import read_lines
from nmt.data.evaluation_set import EvaluationSet
from nmt.evaluation import system
from nmt.evaluation.analysis import look_for
from tests import toy
from tests.commands.test_ensembles import SIZES, make_run


def test_unknown_words_are_no_word_and_prove_nothing(tmp_path: Path) -> None:
    """With a small vocabulary, sentences of the test set have become those of the training data."""
    pairs = toy.sentence_pairs()[:200]
    sections = {"model": SIZES, "tokenizer": {"kind": "words"}, "vocabulary": {"max_size": 16}}
    config = toy.configure(toy.write_table(tmp_path / "pairs.tsv", pairs), **sections)
    prepared = tmp_path / "prepared"
    prepare.run(config, prepared, progress=False)
    one = system.load([make_run(tmp_path / "run", prepared, config, 1)])
    sources, references = (read_lines(prepared, "test", side) for side in ("src", "tgt"))
    seen = look_for(EvaluationSet("test split", sources, [references]), one, [prepared])
    assert any(seen.near)
    assert not any(seen.exact)
    assert "the" in seen.src_counts
    assert "unk" not in {*seen.src_counts, *seen.tgt_counts}

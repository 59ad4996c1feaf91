"""The benchmark of decoding: its plain search against the real one, its counts, its table, peers,
and a complete small run.
"""

import json
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.commands import prepare, train
from nmt.config.load import config_from_dict
from nmt.data.corpus import read_sentences
from nmt.extras.lexicon import command as lexicon
from nmt.model.seq2seq import Seq2Seq
from nmt.run.folder import load_run_config, load_tokenizers, load_vocabularies
from nmt.run.load import load_translator
from scripts import bench_decode
from scripts.bench import peer_decode, peers
from scripts.bench.counting import measure_costs
from scripts.bench.decode_worker import counting, operations
from scripts.bench.peer_decode import PeerModel
from scripts.bench.peers import PeerError
from scripts.bench.plain_search import translate_plainly
from scripts.bench.rounds import BenchSystem
from tests.toy import configure, sentence_pairs, write_table

TEXTS = ["The dog sees the tree.", "The king knows the river.", "A man."]


def train_run(folder: Path, output: str = "softmax") -> Path:
    """A small run with words."""
    config = configure(
        write_table(folder / "toy.tsv", sentence_pairs()),
        data={"prepared": str(folder / "prepared")},
        tokenizer={"kind": "words"},
        model={
            "embedding_size": 8,
            "encoder": {"hidden_size": 4},
            "decoder": {"hidden_size": 8},
            "attention": {"score": "general"},
            "output": output,
        },
        training={
            "max_steps": 40,
            "validate_every": 40,
            "validation_pairs": 5,
            "learning_rate": {"peak": 0.01},
        },
    )
    prepare.run(config, progress=False)
    train.run(config, folder / "run", quiet=True)
    return folder / "run"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With its lexicon."""
    trained = train_run(tmp_path_factory.mktemp("decode"))
    lexicon.run(trained)
    return trained


# --- The plain search
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
# -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beam", [1, 4])
def test_the_plain_search_finds_the_same(run: Path, beam: int) -> None:
    translator = load_translator(run, overrides=[f"decoding.beam={beam}"])
    for text, found in zip([*TEXTS, ""], translator.translate([*TEXTS, ""]), strict=True):
        plain = translate_plainly(translator, text)
        assert (plain.tokens, plain.text, plain.complete) == (
            found.tokens,
            found.text,
            found.complete,
        )
        assert plain.score == pytest.approx(found.score, abs=1e-5)


# --- The count ------------------------------------------------------------------------------------------------------------


def test_positions_of_the_plain_search_by_hand(run: Path) -> None:
    translator = load_translator(run, overrides=["decoding.beam=1"])
    with counting() as count:
        translation = translate_plainly(translator, TEXTS[0])
    steps, read = len(translation.tokens) + translation.complete, len(translation.src_tokens) + 1
    size = len(translator.tgt_vocabulary)
    assert (count.positions.sentences, count.positions.encoder, count.positions.keys) == (
        1,
        read,
        read,
    )
    assert (count.positions.decoder, count.positions.output) == (steps, steps)
    assert (count.positions.pairs, count.n_logits) == (steps * read, steps * size)
    whole = operations(run, count, size)
    count.rows = Counter({size // 2: steps})
    assert whole - operations(run, count, size) == pytest.approx(2 * 8 * count.n_logits, rel=0.1)


def test_a_shortlist_is_counted(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nmt.extras.lexicon import shortlist

    monkeypatch.setattr(shortlist, "N_FREQUENT", 6)
    translator = load_translator(run, overrides=["decoding.shortlist=1"])
    with counting() as count:
        translator.translate(TEXTS)
    assert 4 <= count.n_logits / count.positions.output < len(translator.tgt_vocabulary)


def test_the_clusters_of_an_adaptive_layer_are_counted_where_they_are_looked_into(
    tmp_path: Path,
) -> None:
    run = train_run(tmp_path, "adaptive")
    translator = load_translator(run)
    size = len(translator.tgt_vocabulary)
    with counting() as count:
        translator.translate(TEXTS)
    clusters = measure_costs(load_run_config(run).model, size).clusters
    n_head = clusters[0][0] + len(clusters)
    assert count.rows[n_head] == count.positions.output > 0
    assert set(count.rows) <= {n_head, *(end - first for first, end, _ in clusters)}
    with_clusters, count.rows = operations(run, count, size), Counter({n_head: count.rows[n_head]})
    assert operations(run, count, size) <= with_clusters


# --- The table ------------------------------------------------------------------------------------------------------------


def figures(speed: float, **others: Any) -> dict[str, Any]:
    return {
        "sentences_per_second": speed,
        "tokens_per_second": 9 * speed,
        "bleu": 30.0,
        "length": 9.0,
        "peak_memory": 5e8,
        **others,
    }


def test_table_has_medians_and_ratios_within_rounds() -> None:
    counted = {
        "latency": 0.02,
        "latency_99": 0.05,
        "computed": 50e9,
        "matmul": 100e9,
        "words_scored": 17_000.0,
    }
    exact = BenchSystem(
        "nmt exact, beam 5", figures, [figures(speed, **counted) for speed in (300.0, 100.0, 200.0)]
    )
    peer = BenchSystem(
        "opennmt, beam 5", figures, [figures(speed) for speed in (150.0, 50.0, 100.0)]
    )
    gone = BenchSystem("joeynmt, beam 5", figures, [], "JoeyNMT not installed")
    table = bench_decode.to_table(
        {
            "run": "runs/x",
            "step": 7,
            "split": "test",
            "sentences": 500,
            "threads": 2,
            "systems": [bench_decode.summary(system, exact) for system in (exact, peer, gone)],
        }
    )
    assert table.splitlines() == [
        "runs/x, step 7: 500 sentences of test, rounds 3, threads 2, matrix product 100.0 GFLOP/s",
        "",
        "| system | beam | sentences/s | tokens/s | of exact | ms | ms (99 %) | of matmul | "
        "memory | words scored | BLEU | "
        "length |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
        (
            "| nmt exact | 5 | 200.0 | 1,800 | 1.00 x | 20.0 | 50.0 | 50.0% | 500 MB | 17,000 | "
            "30.00 | 9.00 |"
        ),
        "| opennmt | 5 | 100.0 | 900 | 0.50 x |  |  |  | 500 MB |  | 30.00 | 9.00 |",
        "",
        "joeynmt, beam 5: JoeyNMT not installed",
    ]


# --- Peers ----------------------------------------------------------------------------------------------------------------


def fake_peer(run: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> PeerModel:
    """A toolkit that is a few lines of Python: it gets `train`, or the source's and the output's paths."""
    script = folder / "fake.py"
    script.write_text(program, encoding="utf-8")
    decoder = peer_decode.PeerTranslator(
        lambda values, updates: {**values, "updates": updates},
        lambda job, values: [str(script), str(job.source), str(job.output)],
        pipes=False,
    )
    monkeypatch.setitem(peer_decode.TRANSLATORS, "opennmt", decoder)
    fake = peers.Peer(
        "Fake", "json", (str(script), "train"), lambda *_: {}, re.compile(""), 0, {}, False
    )
    monkeypatch.setitem(peers.PEERS, "opennmt", fake)
    return PeerModel("opennmt", Path(sys.executable), load_run_config(run), folder, 3, {})


def test_a_peer_gets_the_same_tokens_and_is_timed(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "import shutil, sys, time\nif sys.argv[1] != 'train': time.sleep(0.2); "
        "shutil.copy(*sys.argv[1:])\n"
    )
    peer = fake_peer(run, tmp_path, monkeypatch, program)
    peer.prepare("test", 5)
    assert (tmp_path / "opennmt.yaml").read_text(encoding="utf-8") == "updates: 3\n"
    seconds, _, outputs = peer.translate("test", beam=2, batch=8)
    vocabulary, sources = (
        load_vocabularies(run)[0],
        read_sentences(load_run_config(run).prepared_folder, "test", "src")[:5],
    )
    tokenizer, _ = load_tokenizers(run, load_run_config(run))
    assert [vocabulary.ids(output) for output in outputs] == [
        vocabulary.ids(tokenizer.split(text)) for text in sources
    ]
    assert 0.2 <= seconds < 20
    assert len(peer.translate("one", beam=2, batch=8)[2]) == 1


def test_a_model_that_is_there_is_used_again(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = fake_peer(run, tmp_path, monkeypatch, "open('trained.txt', 'a').write('once ')\n")
    peer.prepare("test", 5)
    peer.prepare("test", 3)
    assert (tmp_path / "trained.txt").read_text(encoding="utf-8") == "once "
    assert len((tmp_path / "test.src").read_text(encoding="utf-8").splitlines()) == 3
    more = PeerModel("opennmt", peer.python, peer.config, tmp_path, 4, {})
    more.prepare("test", 3)
    assert (tmp_path / "trained.txt").read_text(encoding="utf-8") == "once once "


@pytest.mark.parametrize(
    ("program", "fault"),
    [
        ("import sys; sys.exit('out of luck')", r"Fake failed with exit status 1: out of luck"),
        ("import sys; open(sys.argv[2], 'w').write('one line')", r"Fake wrote 1 lines for 5"),
    ],
)
def test_a_peer_that_fails(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, fault: str
) -> None:
    peer = fake_peer(run, tmp_path, monkeypatch, program)
    (tmp_path / "test.src").write_text("a\n" * 5, encoding="utf-8")
    with pytest.raises(PeerError, match=fault):
        peer.translate("test", beam=2, batch=8)


def test_a_peer_that_pipes(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import sys; print('said aside', file=sys.stderr); print(sys.stdin.read().upper(), "
        "end='')\n"
    )
    peer = fake_peer(run, tmp_path, monkeypatch, program)
    monkeypatch.setitem(
        peer_decode.TRANSLATORS, "opennmt", replace(peer_decode.TRANSLATORS["opennmt"], pipes=True)
    )
    (tmp_path / "test.src").write_text("a b\nc␣d\n", encoding="utf-8")
    assert peer.translate("test", beam=2, batch=8)[2] == [["A", "B"], ["C D"]]


def test_commands_of_the_peers(tmp_path: Path) -> None:
    config = config_from_dict({"name": "x", "data": {"source": {"path": "none"}}})
    job = peer_decode.Job(tmp_path, tmp_path / "test.src", tmp_path / "test.out", 5, 8, 30)
    for name, decoder in peer_decode.TRANSLATORS.items():
        values = decoder.train(peers.PEERS[name].settings(config, tmp_path, 1), 30)
        words = decoder.command(job, values)
        assert (str(job.source) in words) == (str(job.output) in words) != decoder.pipes
        assert 30 in (values.get("train_steps"), values.get("training", {}).get("updates"))


# --- A whole run ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_small_run(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, nowhere = tmp_path / "figures.json", tmp_path / "python"
    words = [
        str(run),
        "--sentences",
        "4",
        "--singles",
        "2",
        "--beam",
        "2",
        "--rounds",
        "1",
        "--threads",
        "1",
        "--json",
        str(file),
    ]
    words += [
        "--against",
        "reference",
        "--against",
        "opennmt",
        "--peer-python",
        f"opennmt={nowhere}",
    ]
    assert bench_decode.main(words) == 0
    out = capsys.readouterr().out
    results = json.loads(file.read_text(encoding="utf-8"))
    systems = {row["system"]: row for row in results["systems"]}
    assert list(systems) == [
        *(f"nmt {name}, beam 2" for name in ("exact", "int8", "shortlist", "shortlist int8")),
        "reference, beam 2",
        "opennmt, beam 2",
    ]
    assert "opennmt, beam 2: OpenNMT-py " in out
    exact, plain = systems["nmt exact, beam 2"], systems["reference, beam 2"]
    assert (exact["bleu"], exact["length"]) == (plain["bleu"], plain["length"])
    assert exact["words_scored"] == len(load_vocabularies(run)[1])
    assert 0 < exact["computed_share"] < 1
    assert exact["latency_99"] >= exact["latency"] > 0


@pytest.mark.parametrize(
    "words", [["--beam", "0"], ["--rounds", "0"], ["--shortlist", "-1"], ["--against", "fairseq"]]
)
def test_wrong_options(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        bench_decode.main(words)
    assert words[0] in capsys.readouterr().err


def test_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_decode.main([str(tmp_path)]) == 1
    assert "no run here" in capsys.readouterr().err


def test_the_worker_counts_nothing_afterwards() -> None:
    assert Seq2Seq.step.__qualname__ == "Seq2Seq.step"
    assert torch.is_grad_enabled()

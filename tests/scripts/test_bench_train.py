"""The benchmark of training: its count of multiply-adds, its table, peers, and a complete small
run.
"""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt.commands import prepare
from nmt.config.load import config_from_dict, load
from nmt.config.schema import Config, ModelConfig
from nmt.config.yaml_text import dump
from nmt.data.batches import build_batch
from nmt.data.corpus import Corpus
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import Vocabulary
from nmt.training.loss import Loss
from scripts import bench_train
from scripts.bench import peers, worker
from scripts.bench.counting import (
    Positions,
    computed,
    count_products,
    measure_costs,
    multiply_adds,
    needed,
    padded,
    training_operations,
)
from scripts.bench.reference import ReferenceModel
from scripts.bench.rounds import BenchSystem
from tests.toy import configure, sentence_pairs, write_table

SRC_LENGTHS, TGT_LENGTHS = np.array([5, 3, 4]), np.array([6, 2, 4])  # <eos> counted
VOCABULARY = 23


def model_config(**sections: Any) -> ModelConfig:
    """A model whose sizes all differ, as far as the kind allows."""
    values: dict[str, Any] = {
        "embedding_size": 6,
        "encoder": {"hidden_size": 5, **sections.pop("encoder", {})},
        "decoder": {"hidden_size": 8, **sections.pop("decoder", {})},
        "dropout": 0.0,
    }
    return tiny(**values, **sections).model


def tiny(**model: Any) -> Config:
    return config_from_dict({"name": "tiny", "data": {"source": {"path": "none"}}, "model": model})


MODELS = {
    "general": model_config(),
    "two layers": model_config(encoder={"layers": 2}, decoder={"layers": 3, "readout_size": 7}),
    "gru": model_config(encoder={"cell": "gru"}, decoder={"cell": "gru"}, bridge="backward"),
    "elman": model_config(
        encoder={"cell": "elman", "bidirectional": False}, decoder={"cell": "elman"}, bridge="zero"
    ),
    "dot": model_config(decoder={"hidden_size": 10}, attention={"score": "dot"}, bridge="copy"),
    "concat": model_config(attention={"score": "concat", "size": 9}),
    "concat_shared": model_config(
        decoder={"hidden_size": 10}, attention={"score": "concat_shared", "size": 9}
    ),
    "linear": model_config(attention={"score": "linear"}),
    "none": model_config(attention={"score": "none"}),
    "local_p": model_config(attention={"kind": "local_p"}),
    "coverage": model_config(attention={"score": "additive", "size": 9, "kind": "coverage"}),
    "heads": model_config(attention={"score": "additive", "size": 9, "heads": 2}),
    "input feeding": model_config(decoder={"input_feeding": True, "readout_size": 7}),
    "luong concat": model_config(decoder={"readout": "concat"}),
    "bahdanau": model_config(
        attention={"score": "additive"},
        decoder={"kind": "bahdanau", "readout": "maxout", "readout_size": 7},
    ),
    "bahdanau deep": model_config(decoder={"kind": "bahdanau", "readout": "deep"}),
    "bahdanau state": model_config(decoder={"kind": "bahdanau", "readout": "state"}),
    "gnmt": model_config(decoder={"kind": "gnmt", "layers": 3, "readout": "deep"}),
    "tied": model_config(tie_embeddings="target"),
    "adaptive": model_config(output="adaptive", cutoffs=[4, 12]),
    "adaptive by default": model_config(output="adaptive"),
}


def batch_of(src_lengths: Any = SRC_LENGTHS, tgt_lengths: Any = TGT_LENGTHS) -> Any:
    return build_batch(
        [[4] * (length - 1) for length in src_lengths],
        [range(4, length + 3) for length in tgt_lengths],
    )


# --- The count
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
#
# ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_the_count_of_a_batch_is_the_products_that_torch_sees(name: str) -> None:
    # Without gradients, because the softmax computes its own with the loss.
    model = Seq2Seq(MODELS[name], 19, VOCABULARY).requires_grad_(False)
    words = np.bincount(batch_of().tgt_out[batch_of().tgt_mask], minlength=VOCABULARY)
    positions = computed(SRC_LENGTHS, TGT_LENGTHS)
    counts = multiply_adds(measure_costs(MODELS[name], VOCABULARY), positions, words)
    assert sum(counts.values()) == count_products(lambda: Loss(model)(batch_of()))


def test_backward_costs_twice_the_forward() -> None:
    config = tiny(**MODELS["general"].model_dump())
    model, src_lengths = Seq2Seq(config.model, 19, VOCABULARY), np.array([4, 4, 4])
    counted = (
        training_operations(
            measure_costs(config.model, VOCABULARY), computed(src_lengths, TGT_LENGTHS)
        )
        // 2
    )
    # One product is not computed: the gradient of the encoder's first state, which is 0.
    first_state = 2 * 4 * config.model.encoder.hidden_size**2 * len(src_lengths)

    def train() -> None:  # with a plain loss, because torch does not count in-place products
        batch = batch_of(src_lengths)
        decoded = model(batch.src, batch.src_lengths, batch.tgt_in)
        log_probs = model.output.log_probs(decoded.vectors[batch.tgt_mask])
        torch.nn.functional.nll_loss(log_probs, batch.tgt_out[batch.tgt_mask]).backward()

    assert counted - first_state == count_products(train)


def test_words_drawn_from_the_model_cost_the_output_layer_once_more() -> None:
    config = tiny(**MODELS["general"].model_dump())
    model, forcing_mask = (
        Seq2Seq(config.model, 19, VOCABULARY),
        torch.zeros(3, int(TGT_LENGTHS.max()), dtype=torch.bool),
    )
    model.requires_grad_(False)
    positions = computed(SRC_LENGTHS, TGT_LENGTHS, sampled=3 * (6 - 1))
    costs = measure_costs(config.model, VOCABULARY)
    sampling = training_operations(costs, Positions(sampled=positions.sampled)) // 2
    forward = sum(multiply_adds(costs, positions).values())
    assert forward + sampling == count_products(
        lambda: Loss(model)(batch_of(), forcing_mask)
    )


@pytest.mark.parametrize("name", ["general", "gru", "input feeding"])
def test_count_of_the_plain_loop_is_torchs(name: str) -> None:
    config = MODELS[name].model_copy(update={"bridge": "dense"})
    model = ReferenceModel(config, 19, VOCABULARY)
    counts = multiply_adds(measure_costs(config, VOCABULARY), padded(SRC_LENGTHS, TGT_LENGTHS))
    assert sum(counts.values()) == count_products(lambda: model(batch_of()))


def test_count_of_the_plain_loop_with_additive_scores() -> None:
    config = model_config(attention={"score": "additive", "size": 9})
    counts = multiply_adds(measure_costs(config, VOCABULARY), padded(SRC_LENGTHS, TGT_LENGTHS))
    model = ReferenceModel(config, 19, VOCABULARY)
    assert sum(counts.values()) == count_products(lambda: model(batch_of()))


def test_positions_by_hand() -> None:
    assert needed(SRC_LENGTHS, TGT_LENGTHS) == Positions(
        3, encoder=12, keys=12, decoder=12, pairs=30 + 6 + 16, output=12
    )
    assert computed(SRC_LENGTHS, TGT_LENGTHS) == Positions(
        3, encoder=12, keys=15, decoder=18, pairs=90, output=12
    )
    assert padded(SRC_LENGTHS, TGT_LENGTHS) == Positions(
        3, encoder=15, keys=90, decoder=18, pairs=90, output=18
    )
    assert computed(SRC_LENGTHS, TGT_LENGTHS, sampled=7).sampled == 7
    assert Positions(1, 2, 3) + Positions(10, output=1) == Positions(11, 2, 3, output=1)


def test_model_r_by_hand() -> None:
    """One sentence of one source and one target token, calculated by hand."""
    config = load(bench_train.DEFAULT_CONFIG)
    one, costs = np.array([1]), measure_costs(config.model, 17_357)
    assert multiply_adds(costs, needed(one, one)) == {
        "encoder": 393_216,  # 2 directions x 4 gates x 128 x (256 + 128)
        "bridge": 131_072,  # 2 states x 256 x 256
        "keys": 65_536,
        "query": 0,
        "attention": 512,
        "decoder": 524_288,  # 4 gates x 256 x (256 + 256)
        "readout": 131_072,
        "output": 4_443_392,
    }
    assert training_operations(costs, Positions(output=1)) == 6 * 4_443_392
    assert training_operations(costs, Positions(sampled=1)) == 2 * 4_443_392


def test_the_default_is_documented_as_the_configurations_are() -> None:
    from nmt.config.yaml_text import comment

    text = bench_train.DEFAULT_CONFIG.read_text(encoding="utf-8")
    assert text == comment(text), "run scripts/comment_configs.py"
    assert load(bench_train.DEFAULT_CONFIG).name == bench_train.DEFAULT_CONFIG.stem


# --- The table ------------------------------------------------------------------------------------------------------------


def figures(speed: float, **others: Any) -> dict[str, Any]:
    return {
        "tokens_per_second": speed,
        "matmul": 100e9,
        "peak_memory": 500_000_000,
        "load_average": 0.5,
        **others,
    }


def test_table_has_medians_and_ratios_within_rounds() -> None:
    shares = {"data": 0.01, "forward": 0.3, "backward": 0.5, "update": 0.19}
    counted = {"computed": 60e9, "needed": 50e9, "shares": shares}
    ours = BenchSystem(
        "nmt", figures, [figures(speed, **counted) for speed in (3000.0, 1000.0, 2000.0)]
    )
    # Twice as slow in each round, whatever the rounds were like.
    peer = BenchSystem("opennmt", figures, [figures(speed) for speed in (1500.0, 500.0, 1000.0)])
    gone = BenchSystem("joeynmt", figures, [], "JoeyNMT not installed")
    table = bench_train.to_table(
        {
            "name": "tiny",
            "threads": 2,
            "seconds": 20.0,
            "multiply_adds_per_token": {"query": 0.0, "encoder": 1e6, "output": 4.5e6},
            "systems": [bench_train.summary(system, ours) for system in (ours, peer, gone)],
        }
    )
    assert table.splitlines() == [
        "tiny: rounds 3 of 20 s, threads 2, matrix product 100.0 GFLOP/s",
        "Forward 5.50 million multiply-adds per target token: output 4.50, encoder 1.00",
        "",
        (
            "| system | tokens/s | nmt is | GFLOP/s | of matmul | needed | memory | data | "
            "forward | "
            "backward | update |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|---|",
        (
            "| nmt | 2,000 [1,000, 3,000] | 1.00 x | 60.0 | 60.0% | 50.0% | 500 MB | 1.0% | "
            "30.0% | "
            "50.0% | 19.0% |"
        ),
        "| opennmt | 1,000 [500, 1,500] | 2.00 x |  |  |  | 500 MB |  |  |  |  |",
        "",
        "joeynmt: JoeyNMT not installed",
    ]


# --- Errors ------------------------------------------------------------------------------------------------------


def test_data_that_is_not_prepared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepared = f"data.prepared={tmp_path / 'not there'}"
    assert bench_train.main(["--set", prepared, "--set", "training.batch.size=8"]) == 1
    expected = (
        f"not prepared yet; run: nmt prepare -c {bench_train.DEFAULT_CONFIG} --set '{prepared}'\n"
    )
    assert capsys.readouterr().err.endswith(expected)


@pytest.mark.parametrize(
    "words",
    [["--against", "fairseq"], ["--seconds", "0"], ["--rounds", "0"], ["--peer-python", "joeynmt"]],
)
def test_wrong_options(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        bench_train.main(words)
    assert words[0] in capsys.readouterr().err


def test_models_that_others_do_not_have_are_named() -> None:
    bahdanau = MODELS["bahdanau deep"]
    assert bench_train.unsupported_by_reference(bahdanau) == [
        "model.decoder.kind",
        "model.decoder.readout",
    ]
    assert peers.PEERS["joeynmt"].unsupported_keys(bahdanau) == [
        "model.decoder.kind",
        "model.decoder.readout",
    ]
    assert peers.PEERS["opennmt"].unsupported_keys(MODELS["general"]) == [
        "model.encoder.hidden_size"
    ]
    for unsupported in (
        bench_train.unsupported_by_reference,
        *(peer.unsupported_keys for peer in peers.PEERS.values()),
    ):
        assert unsupported(load(bench_train.DEFAULT_CONFIG).model) == []


# --- Peers ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (
            "joeynmt",
            (
                "Epoch   1, Step:       50, Batch Loss:   5.1, Batch Acc: 0.09, Tokens per Sec:  "
                "    "
                "752, Lr: 0.001000"
            ),
        ),
        (
            "opennmt",
            (
                "Step 50/100; acc: 17.5; ppl: 3.3; xent: 5.8; lr: 0.00100; sents: 3200; bsz:  589/ "
                "600/64; 741/752 tok/s; 40 sec;"
            ),
        ),
    ],
)
def test_reads_the_speed_that_a_peer_reports(name: str, line: str) -> None:
    match = peers.PEERS[name].speed.search(line)
    assert match is not None
    assert match[1] == "752"


def test_a_peer_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(peers.PeerError, match=r"JoeyNMT not installed: .* --peer-python joeynmt="):
        peers.find("joeynmt", {"joeynmt": tmp_path / "python"})
    with pytest.raises(
        peers.PeerError, match=r"OpenNMT-py not installed in .*No module named 'onmt'"
    ):
        peers.find("opennmt", {})


FAKE = """
import itertools, sys, time
print("settings", sys.argv[1])
for number in {numbers}:
    time.sleep(0.05)
    print(f"speed {{number}}")
sys.exit("out of luck")
"""


def run_fake(folder: Path, monkeypatch: pytest.MonkeyPatch, numbers: str) -> dict[str, Any]:
    script = folder / "fake.py"
    script.write_text(FAKE.format(numbers=numbers), encoding="utf-8")
    fake = replace(
        peers.PEERS["joeynmt"],
        title="Fake",
        command=("-u", str(script)),
        speed=re.compile(r"speed (\d+)"),
    )
    monkeypatch.setitem(peers.PEERS, "joeynmt", fake)
    config = load(bench_train.DEFAULT_CONFIG)
    return peers.run(
        "joeynmt", Path(sys.executable), config, folder, seconds=0.2, seed=1, environment={}
    )


def test_follows_a_peer_and_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run_fake(tmp_path, monkeypatch, "itertools.chain([1, 1], itertools.repeat(700))")
    assert result["tokens_per_second"] == pytest.approx(700)  # the first two are its warm-up
    assert 0.2 <= result["seconds"] < 10
    assert (tmp_path / "joeynmt.yaml").exists()


def test_a_peer_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        peers.PeerError,
        match=r"Fake ended before it had reported enough; its last lines:\n(.*\n)*  out of luck",
    ):
        run_fake(tmp_path, monkeypatch, "[1, 2]")


# --- A whole run ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Config:
    """A small configuration whose data is prepared."""
    folder = tmp_path_factory.mktemp("bench")
    model = {
        "embedding_size": 8,
        "encoder": {"hidden_size": 4},
        "decoder": {"hidden_size": 8},
        "attention": {"score": "general"},
    }
    config = configure(
        write_table(folder / "toy.tsv", sentence_pairs()),
        data={"prepared": str(folder / "prepared")},
        model=model,
        training={"batch": {"size": 50, "unit": "tokens"}},
    )
    prepare.run(config, progress=False)
    (folder / "toy.yaml").write_text(dump(config), encoding="utf-8")
    return config


def test_peers_get_the_same_tokens(toy: Config, tmp_path: Path) -> None:
    peers.write_data(toy, tmp_path)
    corpus, vocabulary = (
        Corpus.load(toy.prepared_folder, "train"),
        Vocabulary.load(toy.prepared_folder / "tgt.vocab.txt"),
    )
    tokens = (tmp_path / "tgt.tokens").read_text(encoding="utf-8").splitlines()
    lines = (tmp_path / "train.tgt").read_text(encoding="utf-8").splitlines()
    assert len(tokens) + 4 == len(vocabulary)
    assert len(lines) == len(corpus)
    assert sum(len(line.split(" ")) for line in lines) == corpus.tgt.lengths.sum()
    assert {token for line in lines for token in line.split(" ")} <= {*tokens, "<unk>"}


def test_the_real_loop_is_measured_whole(toy: Config) -> None:
    meter, corpus = worker.Meter(seconds=0.2), Corpus.load(toy.prepared_folder, "train")
    work = worker.run_nmt(toy, corpus, meter, epoch=0)
    shares = meter.shares()
    assert meter.updates >= 1
    assert work.tokens == work.needed.output == work.computed.output > 0
    assert work.computed.pairs >= work.needed.pairs
    assert sum(shares.values()) == pytest.approx(1)
    assert min(shares.values()) > 0
    assert torch.Tensor.backward.__qualname__ == "Tensor.backward"  # the timers are removed


@pytest.mark.parametrize("batch", [1, 4])
def test_the_plain_loop_is_measured(toy: Config, batch: int) -> None:
    meter, corpus = worker.Meter(seconds=0.1), Corpus.load(toy.prepared_folder, "train")
    work = worker.run_reference(toy, corpus, meter, 0, batch)
    assert work.needed.sentences == batch * meter.updates
    assert 0 < work.tokens == work.needed.output <= work.computed.output
    assert sum(meter.shares().values()) == pytest.approx(1)


@pytest.mark.slow
def test_a_small_run(toy: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, file, nowhere = (
        toy.prepared_folder.parent / "toy.yaml",
        tmp_path / "figures.json",
        tmp_path / "python",
    )
    words = [
        str(path),
        "--seconds",
        "0.2",
        "--rounds",
        "1",
        "--threads",
        "1",
        "--against",
        "joeynmt",
    ]
    assert (
        bench_train.main([*words, "--peer-python", f"joeynmt={nowhere}", "--json", str(file)]) == 0
    )
    out = capsys.readouterr().out
    assert re.search(r"^\| nmt \| [\d,]+ \[.*\| 1\.00 x \|", out, re.MULTILINE)
    assert f"joeynmt: JoeyNMT not installed: {nowhere}" in out
    (result,) = json.loads(file.read_text(encoding="utf-8"))["results"]
    ours, peer = result["systems"]
    assert 0 < ours["needed_share"] <= ours["computed_share"]
    assert ours["peak_memory"] is None or ours["peak_memory"] > 10**7
    assert sum(ours["shares"].values()) == pytest.approx(1)
    assert peer["rounds"] == []

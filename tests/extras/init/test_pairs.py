"""The pairs of a user's file in the direction of a run, whatever its format."""

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.extras.init.pairs import read_pairs
from tests import toy

PAIRS = [("Open the  door.", "Öffne die Tür."), ("Save as {name}", "Als {name} speichern")]
EXPECTED = [("Open the door.", "Öffne die Tür."), PAIRS[1]]
TMX = '<tmx version="1.4"><header srclang="en"/><body>{}</body></tmx>'
UNIT = '<tu><tuv xml:lang="de-AT"><seg>{}</seg></tuv><tuv xml:lang="en"><seg>{}</seg></tuv></tu>'
PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\nLanguage: de\\n"\n'
FILES = {
    "a.tsv": "".join(f"{src}\t{tgt}\n" for src, tgt in PAIRS),
    "turned.tsv": "".join(f"{tgt}\t{src}\n" for src, tgt in PAIRS * 9),
    "a.csv": "id,de,en\n" + "".join(f'1,"{tgt}","{src}"\n' for src, tgt in PAIRS),
    "a.tmx": TMX.format("".join(UNIT.format(tgt, src) for src, tgt in PAIRS)),
    "a.jsonl": "".join(json.dumps({"de": tgt, "en": src}) + "\n" for src, tgt in PAIRS),
    "a.po": PO + "".join(f'\nmsgid "{src}"\nmsgstr "{tgt}"\n' for src, tgt in PAIRS),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("is_packed", [False, True])
def test_each_format_gives_the_pairs_in_the_direction(
    tmp_path: Path, name: str, is_packed: bool
) -> None:
    content = FILES[name].encode()
    path = tmp_path / f"{name}.gz" if is_packed else tmp_path / name
    path.write_bytes(gzip.compress(content) if is_packed else content)
    assert list(dict.fromkeys(read_pairs(path, ("en", "de")))) == EXPECTED


def test_a_zip_of_two_files(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for side, language in enumerate(("en", "de")):
            archive.writestr(f"a.{language}", "".join(f"{pair[side]}\n" for pair in PAIRS))
    assert read_pairs(tmp_path / "a.zip", ("de", "en")) == [(tgt, src) for src, tgt in EXPECTED]


def test_pairs_that_lack_a_side_are_left_out_and_long_ones_stay(tmp_path: Path) -> None:
    pairs = [*toy.sentence_pairs()[:20], ("OK", "Ja, das ist völlig in Ordnung. " * 9)]
    path = toy.write_table(tmp_path / "a.tsv", [*pairs, ("", "Nein."), ("No.", " ")])
    assert read_pairs(path, ("en", "de")) == [*pairs[:-1], ("OK", pairs[-1][1].strip())]


def test_a_file_with_other_languages(tmp_path: Path) -> None:
    path = tmp_path / "a.tmx"
    path.write_text(FILES["a.tmx"], encoding="utf-8")
    with pytest.raises(DataError, match="has de, and not en and fr, by the names of its columns"):
        read_pairs(path, ("en", "fr"))
    rows = [("en", "de", "fr"), *((*pair, f"Oui {i}.") for i, pair in enumerate(PAIRS * 9))]
    (tmp_path / "a.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")
    with pytest.raises(DataError, match="has en, de and fr, and not both en and it"):
        read_pairs(tmp_path / "a.tsv", ("en", "it"))

"""How many wrong pairs `nmt prepare` finds: makes pairs wrong in known ways, prepares them with all
reasons set to drop, and reads suspicious.tsv. Third languages are messages of installed programs.

    python scripts/dirty_data.py tatoeba/deu-eng.zip 40000 0.05 --kinds misaligned,truncated
    python scripts/dirty_data.py ui/ui.en-ja.tsv.gz --direction en-ja    # as it is
"""

import argparse
import gettext
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from nmt.commands import prepare
from nmt.config.load import config_from_dict
from nmt.data.cleaning import drop_reason
from nmt.data.manifest import SUSPICIOUS
from nmt.extras.suspicion.rules import REASONS
from nmt.lines import read_lines, read_text_lines, write_lines
from nmt.text.tokenizers import normalize

Pair = tuple[str, str]
LANGUAGES = ("fr", "es", "nl", "pl", "sv", "it", "ru")
NO_SENTENCE = re.compile(r"[%<>\n\\_={}\[\]|]|--")
FILLERS = ("-", "...", ".", "?", "*", "TODO", "N/A", "xxx", "1", "—", "()", "n.n.")
TAGS = ("<p>{}</p>", '{} <a href="/?id=7">more</a>', "{}&nbsp;&nbsp;&raquo;", "{}<br />", "[[{}]]")
BOILERPLATE = "Click here to subscribe to our free newsletter!"


def read(path: Path, *, is_reversed: bool) -> list[Pair]:
    """The different pairs of a table, packed or not."""
    rows = (line.split("\t") for line in read_text_lines(path))
    return [*dict.fromkeys((row[is_reversed], row[not is_reversed]) for row in rows)]


def foreign_texts() -> list[str]:
    """Sentences of third languages."""
    texts = set()
    for path in Path("/usr/share/locale").glob("*/LC_MESSAGES/*.mo"):
        if path.parts[-3] in LANGUAGES and "iso_" not in path.name:
            with path.open("rb") as file, suppress(UnicodeDecodeError):
                catalog = vars(gettext.GNUTranslations(file))["_catalog"]
                texts |= {text for key, text in catalog.items() if key != text}
    found = (text for text in texts if not NO_SENTENCE.search(text))
    return sorted(text for text in found if 3 <= len(text.split()) <= 14)


def ways(rows: list[Pair], draw: random.Random) -> dict[str, Callable[[str, str], Pair]]:
    """Ways to make a pair wrong. One that cannot be made wrong in this way stays as it is."""
    after, others = dict(zip(rows, [*rows[1:], rows[0]], strict=True)), foreign_texts()

    def shuffled(text: str) -> str:
        words = text.split()
        return " ".join(draw.sample(words, len(words))) if len(words) > 4 else text

    def half(text: str) -> str:
        words = text.split()
        return " ".join(words[: len(words) // 2]) if len(words) > 3 else text

    def other_number(text: str) -> str:
        return re.sub(r"\d+", lambda found: str(int(found[0]) + draw.randint(1, 40)), text, count=1)

    return {
        "misaligned": lambda src, _: (src, draw.choice(rows)[1]),
        "shifted": lambda src, tgt: (src, after[src, tgt][1]),
        "copy of source": lambda src, tgt: (src, src if " " in src else tgt),
        "copy of target": lambda src, tgt: (tgt if " " in tgt else src, tgt),
        "third target": lambda src, _: (src, draw.choice(others)),
        "third source": lambda _, tgt: (draw.choice(others), tgt),
        "truncated": lambda src, tgt: (src, half(tgt)),
        "over-translated": lambda src, tgt: (src, f"{tgt} {draw.choice(rows)[1]}"),
        "shuffled": lambda src, tgt: (src, shuffled(tgt)),
        "number": lambda src, tgt: (src, other_number(tgt)),
        "boilerplate": lambda _, tgt: (BOILERPLATE, tgt),
        "mojibake": lambda src, tgt: (src, tgt.encode().decode("latin-1")),
        "markup": lambda src, tgt: (src, draw.choice(TAGS).format(tgt)),
        "empty-ish": lambda src, _: (src, draw.choice(FILLERS)),
    }


def make_dirty(rows: list[Pair], n_pairs: int, share: float, names: str) -> list[tuple[Pair, str]]:
    """`n_pairs` pairs, a share of them wrong, the same number in each way; the way of each."""
    draw = random.Random(1)
    makers = ways(rows, draw)
    chosen = names.split(",") if names else [*makers]
    order = draw.sample(rows, len(rows))
    n_wrong = round(share * n_pairs)
    result = [(pair, "") for pair in order[: n_pairs - n_wrong]]
    rest = order[n_pairs - n_wrong :]
    for number in range(n_wrong):
        name = chosen[number % len(chosen)]
        made = ((makers[name](*pair), pair) for pair in iter(lambda: draw.choice(rest), None))
        result.append((next(new for new, old in made if new != old), name))
    return draw.sample(result, len(result))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path, help="of pairs, one a line")
    parser.add_argument("pairs", type=int, nargs="?", help="how many to take; default: all")
    parser.add_argument("share", type=float, nargs="?", default=0.0, help="to make wrong")
    parser.add_argument("--kinds", default="", help="ways, separated by commas; default: all")
    parser.add_argument("--direction", default="en-de", help="de-en exchanges the columns")
    options = parser.parse_args()
    languages = options.direction.split("-")
    rows = read(options.table, is_reversed=languages[1] == "en")
    dirty = make_dirty(rows, options.pairs or len(rows), options.share, options.kinds)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "pairs.tsv")
        write_lines(table, ("\t".join(pair) for pair, _ in dirty))
        source = {
            "format": "tsv",
            "path": str(table),
            "columns": {languages[0]: 1, languages[1]: 2},
        }
        data = {"direction": options.direction, "source": source, "split": {"dev": 9, "test": 9}}
        data["cleaning"] = dict.fromkeys(REASONS, "drop")
        config = config_from_dict({"name": "dirty", "data": data, "tokenizer": {"kind": "bpe"}})
        manifest = prepare.run(config, Path(folder, "prepared"))
        listed = Path(folder, "prepared", SUSPICIOUS)
        lines = [line.split("\t") for line in read_lines(listed)][1:] if listed.exists() else []
    found = {(line[4], line[5]) for line in lines}
    counts, hits = Counter(way for _, way in dirty), Counter[str]()
    for pair, way in dirty:
        src, tgt = map(normalize, pair)
        hits[way] += (src, tgt) in found or drop_reason(src, tgt, config.data.cleaning) is not None
    print(prepare.summary(manifest))
    for way, count in counts.items():
        print(f"{way or 'good pairs':<20}{count:>8,}{hits[way] / count:>10.2%} dropped")
    if not options.share:  # all is to be read
        print("\n".join(map("\t".join, lines)))


if __name__ == "__main__":
    main()

"""Files of English and German pairs, in each format that nmt reads."""

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Sequence

import pyarrow
from pyarrow import parquet

Pairs = Sequence[tuple[str, str]]
TMX = '<?xml version="1.0"?>\n<tmx><header srclang="en-US"/><body>{}</body></tmx>'
TMX_UNIT = (
    '<tu><tuv xml:lang="de-AT"><seg>{1}</seg></tuv><tuv xml:lang="en-US"><seg>{0}</seg></tuv></tu>'
)
XLIFF = (
    '<xliff version="1.2"><file source-language="en-US" target-language="de">\n{}</file></xliff>'
)
XLIFF_UNIT = '<trans-unit id="1"><source>{}</source><target>{}</target></trans-unit>\n'
PO = 'msgid ""\nmsgstr ""\n"Language: de\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n{}'
PO_MESSAGE = 'msgid "{}"\nmsgstr "{}"\n\n'


def table(rows: Iterable[Sequence[str]], separator: str = "\t") -> bytes:
    if separator != "\t":
        rows = [['"{}"'.format(cell.replace('"', '""')) for cell in row] for row in rows]
    return "".join(separator.join(row) + "\n" for row in rows).encode()


def filled(file: str, unit: str, pairs: Pairs) -> str:
    return file.format("".join(unit.format(*pair) for pair in pairs))


def records(pairs: Pairs) -> list[dict[str, object]]:
    return [{"id": f"no-{i}", "translation": {"en": a, "de": b}} for i, (a, b) in enumerate(pairs)]


def zipped(members: dict[str, str | bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def zip_of_two_files(pairs: Pairs) -> bytes:
    members = {"README": "News.\n", "News.de-en.ids": "1\n"}
    sides = {"en": 0, "de_AT": 1}
    texts = {
        f"News.de-en.{name}": "".join(f"{pair[side]}\n" for pair in pairs)
        for name, side in sides.items()
    }
    return zipped({**members, **texts})


def parquet_file(pairs: Pairs) -> bytes:
    stream = io.BytesIO()
    columns = {"en": [pair[0] for pair in pairs], "German": [pair[1] for pair in pairs]}
    parquet.write_table(pyarrow.table(columns), stream)
    return stream.getvalue()


Format = Callable[[Pairs], bytes]
TEXT_FORMATS: dict[str, Format] = {
    "tmx": lambda pairs: filled(TMX, TMX_UNIT, pairs).encode("utf-16"),
    "po": lambda pairs: filled(PO, PO_MESSAGE, pairs).encode(),
    "xliff": lambda pairs: filled(XLIFF, XLIFF_UNIT, pairs).encode(),
    "jsonl": lambda pairs: "\n".join(map(json.dumps, records(pairs))).encode(),
    "json": lambda pairs: json.dumps(records(pairs), indent=1).encode(),
}
FORMATS = {**TEXT_FORMATS, "parquet": parquet_file, "zip": zip_of_two_files}

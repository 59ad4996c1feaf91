"""Further formats of sentence pairs: the exports of tatoeba.org, JSON lines, Parquet, TMX, PO,
XLIFF and prepared folders; and files packed with zstandard.
"""

from nmt.plugins import Extra, Part

READERS = "nmt.extras.formats.readers"
CATALOGS = "nmt.extras.formats.catalogs"
PROLOG = r"\s*(?:<[?!][^>]*>\s*)*"  # of XML
EXTRA = Extra(
    rows={
        "formats": {
            "links": Part(
                "nmt.extras.formats.links:open_links",
                text="links (ids, sentences, sentences)",
                needs_columns=True,
            ),
            "jsonl": Part(
                f"{READERS}:open_jsonl",
                text="jsonl",
                columns="name",
                records=f"{READERS}:jsonl_records",
                begins=r'\s*\{[ \t]*"[^\n]*(?:\}\s*\n|\Z)|\s*\[\s*\{\s*"',
            ),
            "parquet": Part(
                f"{READERS}:open_parquet",
                text="parquet",
                columns="name",
                records=f"{READERS}:parquet_records",
            ),
            "tmx": Part(
                f"{READERS}:open_tmx",
                text="tmx",
                columns="none",
                records=f"{READERS}:tmx_records",
                begins=PROLOG + r"<(?:\w+:)?tmx\b",
            ),
            "po": Part(
                f"{CATALOGS}:open_po",
                text="po",
                columns="none",
                records=f"{CATALOGS}:po_records",
                begins=r'(?:#.*\n|\s)*msg(?:id|ctxt) "',
            ),
            "xliff": Part(
                f"{CATALOGS}:open_xliff",
                text="xliff",
                columns="none",
                records=f"{CATALOGS}:xliff_records",
                begins=PROLOG + r"<(?:\w+:)?xliff\b",
            ),
            "prepared": Part(
                "nmt.extras.formats.prepared:open_prepared",
                text="prepared (a folder)",
                columns="none",
                folder="manifest.json",
            ),
        }
    },
    install="formats",
    needs=("documents",),
)

"""Further formats of sentence pairs: JSON lines, Parquet, TMX; and files packed with zstandard."""

from nmt.plugins import Extra, Part

READERS = "nmt.extras.formats.readers"
EXTRA = Extra(
    rows={
        "formats": {
            "jsonl": Part(
                f"{READERS}:open_jsonl",
                text="jsonl",
                columns="name",
                records=f"{READERS}:jsonl_records",
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
            ),
        }
    },
    install="formats",
)

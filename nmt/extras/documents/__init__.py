"""Files of many formats: their texts are translated, all else stays byte for byte."""

from nmt.plugins import Extra, Part

FOLDER = "nmt.extras.documents"
FORMATS = {
    "txt": Part(texts=f"{FOLDER}.document:find", suffixes=(".txt",)),
    "md": Part(texts=f"{FOLDER}.markdown:find", suffixes=(".md", ".markdown")),
    "html": Part(
        texts=f"{FOLDER}.html:find",
        labels=f"{FOLDER}.html:labels",
        suffixes=(".html", ".htm", ".xhtml"),
        declares=True,
        escapes="xmlcharrefreplace",
    ),
    "docx": Part(texts=f"{FOLDER}.docx:DocxDocument", suffixes=(".docx",)),
    "po": Part(
        texts=f"{FOLDER}.po:find",
        labels=f"{FOLDER}.po:labels",
        suffixes=(".po", ".pot"),
        targets=True,
        declares=True,
    ),
    "xliff": Part(
        texts=f"{FOLDER}.xliff:find",
        labels=f"{FOLDER}.xliff:labels",
        suffixes=(".xlf", ".xliff"),
        targets=True,
        declares=True,
        escapes="xmlcharrefreplace",
    ),
    "android": Part(
        texts=f"{FOLDER}.android:find",
        suffixes=(".xml",),
        declares=True,
        escapes="xmlcharrefreplace",
    ),
    "properties": Part(
        texts=f"{FOLDER}.properties:find",
        suffixes=(".properties",),
        encoding="latin-1",
        escapes="backslashreplace",
    ),
    "json": Part(texts=f"{FOLDER}.json:find", suffixes=(".json",)),
    "srt": Part(texts=f"{FOLDER}.subtitles:find", suffixes=(".srt",)),
    "vtt": Part(texts=f"{FOLDER}.subtitles:find", suffixes=(".vtt",)),
}
for row in FORMATS.values():
    row.traits["opens"] = f"{FOLDER}.document:open_document"
EXTRA = Extra(rows={"formats": FORMATS}, install="documents")

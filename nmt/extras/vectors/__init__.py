from nmt.plugins import Extra

EXTRA = Extra(
    keys={"model": "nmt.extras.vectors.keys:ModelKeys"},
    rules="nmt.extras.vectors.rules:rules",
    start="nmt.extras.vectors.vectors:fill",
)

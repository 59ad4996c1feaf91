"""Files of many formats: their texts are translated, all else stays byte for byte."""

from nmt.plugins import Extra

EXTRA = Extra(translate="nmt.extras.documents.options:DocumentOptions", install="texts")

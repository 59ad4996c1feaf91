"""Texts, not only sentences: lines of several sentences, placeholders, tags, numbers, terms."""

from nmt.plugins import Extra

EXTRA = Extra(translate="nmt.extras.texts.options:TextOptions", install="texts")

"""The training curves, in the file curves.png of a run."""

from nmt.plugins import Extra

EXTRA = Extra(listener="nmt.extras.curves.picture:Curves")

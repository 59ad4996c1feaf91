"""Imported once by the server that forks the processes of the campaign: what readers import on use
takes seconds.
"""

import nmt.commands.doctor
import nmt.commands.inspect
import nmt.commands.runs
import nmt.data.inspection
import nmt.data.reading
import nmt.metrics.alignment_error
import nmt.run.load
import nmt.serve.app
import nmt.training.word_vectors  # noqa: F401

"""Imported once by the server that forks the processes of the campaign: what readers import on use
takes seconds.
"""

import nmt.data.reading
import nmt.extras.analysis.alignment_error
import nmt.extras.init.inspection
import nmt.extras.runs.check
import nmt.extras.runs.inspect
import nmt.extras.runs.table
import nmt.extras.serve.app
import nmt.extras.vectors.vectors  # noqa: F401
import nmt.run.load

"""What a browser gets: the page that translates, its runtime, and the look of the reports.

An extra without commands: `nmt serve`, `nmt export --web` and the reports of `nmt analyze` read its
files. In an exported page, request_worker.js takes the place of request_server.js.
"""

from nmt.plugins import Extra

EXTRA = Extra()

from nmt.plugins import Extra

EXTRA = Extra()

from nmt.plugins import Extra

EXTRA = Extra(listener="nmt.extras.tensorboard.listener:open_listener", install="tensorboard")

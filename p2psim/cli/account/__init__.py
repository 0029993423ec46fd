"""The privacy calculator, ``p2psim account``: what releases cost, and what agents on a graph learn of each other."""

from p2psim.cli.account.network import account_network
from p2psim.cli.account.releases import account_releases, account_run, calibrate
from p2psim.cli.arguments import group

_ABOUT = "privacy calculator: what releases cost, and who learns what"

account = group("account", _ABOUT, account_releases, account_run, calibrate, account_network)

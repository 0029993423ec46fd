"""The privacy calculator, ``p2psim account``: what a list of releases costs, and who learns what on a graph."""

from p2psim.cli.account.network import account_network
from p2psim.cli.account.releases import account_releases, account_run, calibrate
from p2psim.cli.arguments import group

_ABOUT = "privacy calculator: what releases cost, and who learns what"

account = group("account", _ABOUT, account_releases, account_run, calibrate, account_network)

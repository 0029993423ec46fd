"""What each action of ``p2psim account`` does."""

import argparse

from p2psim.account.calibrate import account_calibrate
from p2psim.account.network import account_network
from p2psim.account.releases import account_releases

ACTIONS = {
    "releases": account_releases,
    "calibrate": account_calibrate,
    "network": account_network,
}


def account(asked: argparse.Namespace) -> int:
    """``p2psim account``; takes parsed arguments, returns the exit code."""
    return ACTIONS[asked.action](asked)

"""What each action of ``p2psim account`` does."""

import argparse

from p2psim.account.calibrate import account_calibrate
from p2psim.account.network import account_network
from p2psim.account.releases import account_releases
from p2psim.account.runs import account_run

ACTIONS = {
    "releases": account_releases,
    "run": account_run,
    "calibrate": account_calibrate,
    "network": account_network,
}


def account(asked: argparse.Namespace) -> int:
    """``p2psim account``; takes parsed arguments, returns the exit code."""
    return ACTIONS[asked.action](asked)

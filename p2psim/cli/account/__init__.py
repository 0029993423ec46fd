"""The privacy calculator, ``p2psim account``: what a list of releases costs, and who learns what on a graph."""

from p2psim.cli.account import network, releases, run
from p2psim.cli.arguments import Commands, add_command


def add(commands: Commands) -> None:
    """Add the command and its actions."""
    account = add_command(commands, "account", "privacy calculator: what releases cost, and who learns what")
    actions = account.add_subparsers(dest="action", metavar="ACTION", required=True)
    for add_action in (releases.add, run.add, releases.add_calibration, network.add):
        add_action(actions)

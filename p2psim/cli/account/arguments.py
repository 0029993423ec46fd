"""Arguments of ``p2psim account``; nothing heavy is imported for them.

Numbers as the calculator reads and prints them.
"""

import argparse
import math

from p2psim.cli.subcommands import ANY, Commands, add_command, number, whole
from p2psim.core.errors import InputError

_LIST = """\
A list of releases is written LOSSxCOUNT,LOSSxCOUNT,…: `0.1x50,0.2x10`. The loss of a release is its sensitivity divided
by the scale of its noise, in the norm of that noise (L1 for Laplace and discrete Laplace, L2 for Gaussian): ε₀ of a
Laplace release, μ of a Gaussian one. An entry may name its own noise and its own sampling rate: `gaussian:0.5x10`,
`laplace:1@0.01x100`. Neighbouring data differ in one record that is replaced by another."""


def add_account(account: argparse.ArgumentParser) -> None:
    """Add the actions of the calculator."""
    actions = account.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_releases(actions)
    _add_run(actions)
    _add_calibrate(actions)
    _add_network(actions)


def _action(actions: Commands, name: str, summary: str, epilog: str = "") -> argparse.ArgumentParser:
    return add_command(actions, name, summary, "print it as JSON", epilog)


def _add_accountants(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "--accountant",
        action="append",
        metavar="NAME",
        help="who adds up; may be given again; by default all that can; p2psim list accountant tells them",
    )


def _add_at(action: argparse.ArgumentParser, default: str = "") -> None:
    at = action.add_mutually_exclusive_group(required=not default)
    at.add_argument("--delta", type=number, metavar="D", help=f"tell ε at this δ{default}")
    at.add_argument("--epsilon", type=number, metavar="E", help="tell δ at this ε")


def _add_noise(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "--noise",
        default="laplace",
        choices=("laplace", "gaussian", "discrete-laplace", "pure"),
        help="of releases that do not name their own; pure: only ε₀ is known; laplace by default",
    )
    action.add_argument(
        "--rate", type=number, metavar="Q", help="share of the records that each release samples"
    )


def _add_releases(actions: Commands) -> None:
    releases = _action(actions, "releases", "what a list of releases costs, by every accountant", _LIST)
    _add_noise(releases)
    given = releases.add_mutually_exclusive_group(required=True)
    given.add_argument("--loss", metavar="LIST", help="loss of each release: 0.1, or 0.1x50,0.2x10")
    given.add_argument("--scale", metavar="LIST", help="scale of the noise instead, beside --sensitivity")
    releases.add_argument("--sensitivity", type=number, metavar="D", help="Δ, for --scale; 1 by default")
    releases.add_argument(
        "--count", type=whole("--count", 1), default=1, metavar="N", help="times that the list is repeated"
    )
    _add_at(releases)
    _add_accountants(releases)
    releases.add_argument(
        "--plot", metavar="FILE.png", help="draw accountants against the number of releases (PNG and SVG)"
    )
    releases.add_argument(
        "--trade-off", metavar="FILE.png", help="draw δ against ε, and errors of any test (PNG and SVG)"
    )


def _add_run(actions: Commands) -> None:
    run = _action(actions, "run", "what the releases of a run cost, agent by agent, by every accountant")
    run.add_argument("run", metavar="RUN", help="a run folder")
    _add_at(run, "; that of the run by default")
    _add_accountants(run)
    run.add_argument("--cell", type=whole("--cell", *ANY), metavar="I", help="this cell alone")


def _add_calibrate(actions: Commands) -> None:
    calibrate = _action(
        actions,
        "calibrate",
        "the noise that keeps so many releases within a budget, or the releases that fit it",
    )
    _add_noise(calibrate)
    asked = calibrate.add_mutually_exclusive_group(required=True)
    asked.add_argument(
        "--count",
        type=whole("--count", -(2**63)),
        metavar="N",
        help="releases with the same loss: tell the loss",
    )
    asked.add_argument("--loss", type=number, metavar="L", help="loss of each release: tell how many")
    calibrate.add_argument("--epsilon", type=number, required=True, metavar="E", help="ε of the budget")
    calibrate.add_argument(
        "--delta", type=number, default=0.0, metavar="D", help="δ of the budget; 0 by default"
    )
    _add_accountants(calibrate)


def _add_network(actions: Commands) -> None:
    network = _action(
        actions,
        "network",
        "who learns what about whom when each adds Gaussian noise once and then all gossip",
    )
    network.add_argument("scenario", nargs="?", metavar="SCENARIO", help="a scenario file, for its graph")
    network.add_argument("--topology", metavar="YAML", help="a graph instead: '{kind: ring, agents: 20}'")
    network.add_argument(
        "--seed", type=whole("--seed"), default=0, metavar="S", help="of a random --topology; 0 by default"
    )
    network.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="as in p2psim run")
    network.add_argument(
        "--steps", type=whole("--steps"), required=True, metavar="T", help="steps of x ← W x"
    )
    network.add_argument("--sigma", type=number, required=True, metavar="S", help="σ of the noise")
    network.add_argument(
        "--sensitivity", type=number, default=1.0, metavar="D", help="L2 sensitivity Δ; 1 by default"
    )
    network.add_argument("--delta", type=number, required=True, metavar="D", help="δ at which ε is told")
    network.add_argument("--colluders", metavar="I,J,…", help="agents whose views are added to everybody's")
    network.add_argument("--out", metavar="DIR", help="where to draw the figures; none are drawn without")


#: Numbers that differ by less than this part of themselves are told as the same.
ROUNDING = 1e-12


def upward(value: float, digits: int = 7) -> str:
    """Write a number with so many significant digits, never smaller than it is, but for the rounding of its last bits.

    A loss that is rounded to the nearest would be told too small half of the time.
    """
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    text = f"{value:.{digits}g}"
    if float(text) < value - ROUNDING * abs(value):
        last = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
        text = f"{float(text) + last:.{digits}g}"
    return text


def downward(value: float, digits: int = 7) -> str:
    """Write a number with so many significant digits, never larger than it is."""
    text = upward(-value, digits)
    return text[1:] if text.startswith("-") else f"-{text}" if value else text


def positive(name: str, value: float) -> float:
    """Return a number that must be positive and finite.

    Raises
    ------
    InputError
        Naming the argument, what is expected and what was given.
    """
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name}: must be a positive number, got {value:g}")
    return value


def share(name: str, value: float, *, zero: bool = False) -> float:
    """Return a number that must lie between 0 and 1, 1 itself not, and 0 only if that is allowed."""
    if not (0 < value < 1 or (zero and value == 0)):
        raise InputError(f"{name}: must be {'at least' if zero else 'above'} 0 and below 1, got {value:g}")
    return value


def check_rate(name: str, rate: float | None) -> None:
    """Refuse a sampling rate that is given and is not above 0 and at most 1.

    Raises
    ------
    InputError
        Naming the argument, what is expected and what was given.
    """
    if rate is not None and not 0 < rate <= 1:
        raise InputError(f"{name}: must be above 0 and at most 1, got {rate:g}")

"""``p2psim account network``: what agents learn about each other when all add Gaussian noise once, then gossip."""

from __future__ import annotations

import argparse
from dataclasses import asdict, astuple, replace
from typing import TYPE_CHECKING

from p2psim.cli.account.options import positive, share, upward
from p2psim.cli.arguments import command, number, option
from p2psim.core.errors import Fault, InputError, check_place
from p2psim.core.printing import complain, print_json, print_table, table_rows

if TYPE_CHECKING:
    from p2psim.network.graph import Graph
    from p2psim.privacy.network_privacy import Distance, Shares

#: What every number of this rests on.
NOTES = (
    "noise-then-gossip: each agent adds noise once, then x ← W x with W_ij = 1/(1 + max(d_i, d_j))",
    "the graph is taken as public, and everybody follows the protocol",
)

#: Agents up to which `--json` holds the whole matrix.
MOST_IN_JSON = 300


@command(
    "network",
    "what agents learn about each other when each adds Gaussian noise once and then all gossip",
    option("scenario SCENARIO", "a scenario file, for its graph", nargs="?"),
    option("--topology YAML", "a graph instead: '{kind: ring, agents: 20}'"),
    option("--seed S", "of a random --topology; 0 by default", whole=(), default=0),
    option("--set KEY=VALUE", "as in p2psim run", repeated=True),
    option("--steps T", "steps of x ← W x", whole=(), required=True),
    option("--sigma S", "σ of the noise", number, required=True),
    option("--sensitivity D", "L2 sensitivity Δ; 1 by default", number, default=1.0),
    option("--delta D", "δ at which ε is reported", number, required=True),
    option("--colluders I,J,…", "agents whose views are added to everybody's"),
    option("--out DIR", "folder for the figures; without it none are drawn"),
    json="print it as JSON",
)
def account_network(args: argparse.Namespace) -> None:
    """Print ε by distance, and draw the figures that were asked for."""
    import numpy as np

    from p2psim.network.spectrum import metropolis
    from p2psim.privacy.network_privacy import by_distance, epsilons, hop_distances, shares

    ratio = positive("--sensitivity", args.sensitivity) / positive("--sigma", args.sigma)
    delta = share("--delta", args.delta)
    if (args.scenario is None) == (args.topology is None):
        raise InputError("account network takes a SCENARIO or --topology YAML")
    weights = metropolis(_of_topology(args) if args.scenario is None else _of_scenario(args))
    colluders = _colluders(args.colluders, weights.shape[0])
    learned = shares(weights, args.steps, colluders)
    epsilon = epsilons(learned.share, ratio, delta)
    hops = hop_distances(weights)
    # A pair with a colluder says nothing of colluding: who colludes is left out, as are its own data.
    if colluders:
        hops[colluders], hops[:, colluders] = float("inf"), float("inf")
    share_rows, epsilon_rows = by_distance(learned.share, hops), by_distance(epsilon, hops)
    alone = float(epsilons(np.ones(1), ratio, delta)[0])
    files = _draw(args, learned, epsilon_rows, ratio, delta) if args.out else []
    if args.json:
        tree = {
            **{key: getattr(args, key) for key in ("steps", "sigma", "sensitivity", "delta")},
            "agents": len(hops),
            "notes": list(NOTES),
            "share_by_distance": [asdict(row) for row in share_rows],
            "epsilon_by_distance": [asdict(row) for row in epsilon_rows],
            "epsilon_of_share_1": alone,
            "doubtful": learned.doubtful.nonzero()[0].tolist(),
            "files": files,
        }
        if len(hops) <= MOST_IN_JSON:
            tree |= {"share": learned.share.tolist(), "epsilon": epsilon.tolist()}
        print_json(tree)
    else:
        columns = ("hops", "pairs", "share: mean", "least", "largest", "ε: mean", "ε: least", "ε: largest")
        pairs = zip(map(astuple, share_rows), map(astuple, epsilon_rows), strict=True)
        values = [(*a[:2], *(upward(number, 5) for number in (*a[2:], *b[2:]))) for a, b in pairs]
        print(*NOTES, sep="\n")
        title = f"μ²σ²/Δ² and ε at δ = {delta:g} of one agent towards another, by distance"
        print_table(table_rows(columns, values), title, len(values))
        print(f"what an agent sends out itself (share 1): ε = {upward(alone)}")
        print("\n".join(files), end="\n" if files else "")
    if learned.doubtful.any():
        hidden = f"for {int(learned.doubtful.sum())} agents rounding hides whether a direction is seen"
        complain(f"{hidden}; their shares may be wrong", "warning")


def _draw(
    args: argparse.Namespace, learned: Shares, epsilon_rows: list[Distance], ratio: float, delta: float
) -> list[str]:
    from p2psim.report import files, style
    from p2psim.report.account import PairwisePrivacy, draw_network_privacy

    colluding = f", colluding with {args.colluders}" if args.colluders else ""
    title = f"{len(learned.share)} agents, {args.steps} steps, Δ/σ\u00a0=\u00a0{ratio:.3g}{colluding}"
    drawn = PairwisePrivacy(learned.share, epsilon_rows, title, ratio, delta, NOTES)
    with style.look():
        return list(map(str, files.save_all(draw_network_privacy(drawn), args.out)))


def _colluders(given: str | None, agents: int) -> list[int]:
    if given is None:
        return []
    try:
        numbers = sorted({int(part) for part in given.split(",")})
    except ValueError:
        raise InputError(f"--colluders: agents' numbers, such as 3,5, are expected, got {given!r}") from None
    for agent in numbers:
        check_place("--colluders", agent, agents)
    return numbers


def _of_scenario(args: argparse.Namespace) -> Graph:
    """Graph of the scenario's first cell and replica."""
    from p2psim.scenario.cells import cells
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.algorithms import adapter_of
    from p2psim.simulation.workspace import Workspace

    scenario = Scenario.load(args.scenario, args.set)
    first = cells(scenario)[0].scenario
    try:
        return adapter_of(first).links_of(first, Workspace(None).case(first, 0), 0)
    except InputError as error:
        raise InputError(*(scenario.locate(fault) for fault in error.faults)) from None


def _of_topology(args: argparse.Namespace) -> Graph:
    from p2psim.core.nodes import plain
    from p2psim.core.options import Options
    from p2psim.network.graph import TopologyInputs
    from p2psim.network.topologies import AnyTopology, draw_links
    from p2psim.scenario import yaml

    class Asked(Options):
        """The one thing that is given."""

        topology: AnyTopology

    try:
        topology = Asked(topology=plain(yaml.read(args.topology, "--topology"))).topology
        return draw_links(topology, TopologyInputs(), seed=args.seed, replica=0)
    except InputError as error:
        raise InputError(*(replace(fault, key=_named(fault)) for fault in error.faults)) from None


def _named(fault: Fault) -> str:
    """The key of a fault of a topology, which here is an argument."""
    within = fault.key.removeprefix("network.").removeprefix("topology")
    return f"--topology{within}" if not fault.path else fault.key

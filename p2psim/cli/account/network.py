"""``p2psim account run``: what the releases of a run cost.

``p2psim account network``: who learns what about whom.

What each action of ``p2psim account`` does.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.cli.account.arguments import positive, share, upward
from p2psim.cli.account.listing import At, chosen
from p2psim.cli.account.releases import account_calibrate, account_releases, read_at
from p2psim.core.errors import Fault, InputError, MissingPartError, check_place
from p2psim.core.printing import complain, print_json, print_table

if TYPE_CHECKING:
    from p2psim.network.section import Links
    from p2psim.privacy.network_privacy import Shares
    from p2psim.runs.ledger_check import Recounted
    from p2psim.runs.result import Result

#: Ranges of agents that a row of the table names.
MOST_RANGES = 5


def account_run(asked: argparse.Namespace) -> int:
    """Print what each cell's agents spent, the most over replicas; return the exit code."""
    from p2psim.runs.ledger_check import recount
    from p2psim.runs.result import Result
    from p2psim.runs.verification import checked_partly

    result = Result.load(asked.run)
    try:
        at = _at(asked, result)
        runs = list(recount(result, asked.cell))
    except MissingPartError as error:
        raise checked_partly(result, error) from None
    noises = list(dict.fromkeys(noise for run in runs for noise in run.charges.used))
    accountants, left_out = chosen(asked.accountant, noises)
    sums = [
        {
            name: at.sums(accountant, run.charges, run.scenario.privacy.overlap.holders)
            for name, accountant in accountants.items()
        }
        for run in runs
    ]
    if asked.json:
        print_json(
            {
                "epsilon": at.epsilon,
                "delta": at.delta,
                "not_able": left_out,
                "agents": [
                    row for run, found in zip(runs, sums, strict=True) for row in _each(run, found, at)
                ],
            }
        )
        return 0
    rows = []
    for cell in dict.fromkeys(run.cell for run in runs):
        mine = [(run, found) for run, found in zip(runs, sums, strict=True) if run.cell == cell]
        entry = result.described.cells[cell]
        rows += [{"cell": cell, **entry.swept, **row} for row in _of_cell(mine, at, entry.notes)]
    print_table(rows, f"{at.asked} of agents' real records at {at.fixed}; the most over replicas", len(rows))
    if left_out:
        names = ", ".join(noise.name for noise in noises)
        print(f"not told: {', '.join(left_out)} (cannot account for all of: {names})")
    return 0


def _at(asked: argparse.Namespace, result: Result) -> At:
    if asked.delta is None and asked.epsilon is None:
        delta = result.scenario.privacy.delta
        if delta is None:
            raise InputError("--delta or --epsilon: one must be given, since the run has no δ of its own")
        return At(delta, None)
    return read_at(asked)


def _each(run: Recounted, found: dict[str, np.ndarray], at: At) -> list[dict[str, Any]]:
    key = "epsilon" if at.delta is not None else "delta"
    flags = _flags(run)
    return [
        {
            "cell": run.cell,
            "replica": run.replica,
            "agent": agent,
            "releases": int(run.charges.made[agent]),
            **{f"{key}_{name}": float(values[agent]) for name, values in found.items()},
            "flags": flags[agent],
        }
        for agent in range(run.charges.agents)
    ]


def _flags(run: Recounted) -> list[list[str]]:
    """What must be said with the numbers of each agent, as the ledger has it."""
    from p2psim.runs.tables import FLAGS

    raised = {
        name: run.ledger[name].fillna(False).astype(bool).to_numpy() for name in FLAGS if name in run.ledger
    }
    return [[name for name, flags in raised.items() if flags[agent]] for agent in range(len(run.ledger))]


def _of_cell(
    runs: Sequence[tuple[Recounted, dict[str, np.ndarray]]], at: At, notes: Sequence[str]
) -> list[dict[str, Any]]:
    """Rows of one cell: agents of whom all is the same have one together."""
    agents = max(run.charges.agents for run, _ in runs)
    together: dict[tuple[Any, ...], list[int]] = {}
    for agent in range(agents):
        releases = max(int(run.charges.made[agent]) for run, _ in runs)
        spent = [upward(float(max(found[name][agent] for _, found in runs))) for name in runs[0][1]]
        raised = {name: None for run, _ in runs for name in _flags(run)[agent]}
        together.setdefault((releases, *spent, ", ".join([*raised, *notes])), []).append(agent)
    names = list(runs[0][1])
    return [
        {
            "agents": ranges(own),
            "releases": releases,
            **{f"{at.asked} {name}": value for name, value in zip(names, spent, strict=True)},
            "flags": flags,
        }
        for (releases, *spent, flags), own in together.items()
    ]


def ranges(numbers: Sequence[int]) -> str:
    """Rising numbers in few words: 0–2, 5. Of many ranges the first, and how many numbers there are."""
    from p2psim.scenario.yaml import runs_of

    shown = [f"{low}" if low == high else f"{low}–{high}" for low, high in runs_of(numbers)]
    if len(shown) > MOST_RANGES:
        shown[MOST_RANGES:] = [f"… ({len(numbers)} in all)"]
    return ", ".join(shown)


#: What every number of this rests on.
NOTES = (
    "noise-then-gossip: each agent adds noise once, then x ← W x with W_ij = 1/(1 + max(d_i, d_j))",
    "the graph is taken as public, and everybody follows the protocol",
)

#: Agents up to which `--json` holds the whole matrix.
MOST_IN_JSON = 300


def account_network(asked: argparse.Namespace) -> int:
    """Print ε by distance, draw the figures that were asked for, and return the exit code."""
    from p2psim.network.spectrum import metropolis
    from p2psim.privacy.network_privacy import by_distance, epsilons, hop_distances, shares

    ratio = positive("--sensitivity", asked.sensitivity) / positive("--sigma", asked.sigma)
    delta = share("--delta", asked.delta)
    if asked.steps < 0:
        raise InputError(f"--steps: must be at least 0, got {asked.steps}")
    weights = metropolis(_links(asked))
    colluders = _colluders(asked.colluders, weights.shape[0])
    found = shares(weights, asked.steps, colluders)
    epsilon = epsilons(found.share, ratio, delta)
    hops = hop_distances(weights)
    if (
        colluders
    ):  # a pair with a colluder says nothing of colluding: who colludes is left out, as are its own data
        hops[colluders], hops[:, colluders] = float("inf"), float("inf")
    rows: list[dict[str, Any]] = [
        {
            "hops": one.hops,
            "pairs": one.pairs,
            "share: mean": upward(one.mean, 5),
            "least": upward(one.least, 5),
            "largest": upward(one.most, 5),
            "ε: mean": upward(cost.mean, 5),
            "ε: least": upward(cost.least, 5),
            "ε: largest": upward(cost.most, 5),
        }
        for one, cost in zip(by_distance(found.share, hops), by_distance(epsilon, hops), strict=True)
    ]
    alone = float(epsilons(_one(), ratio, delta)[0])
    files = _draw(asked, found, hops, ratio, delta) if asked.out else []
    if asked.json:
        print_json(_tree(asked, found, epsilon, hops, alone, files))
    else:
        for note in NOTES:
            print(note)
        print_table(
            rows, f"μ²σ²/Δ² and ε at δ = {delta:g} of one agent towards another, by distance", len(rows)
        )
        print(f"what an agent sends out itself (share 1): ε = {upward(alone)}")
        print("\n".join(files), end="\n" if files else "")
    if found.doubtful.any():
        complain(
            f"for {int(found.doubtful.sum())} agents rounding cannot tell whether a direction is seen; their "
            "shares may be off",
            "warning",
        )
    return 0


def _one() -> np.ndarray:
    import numpy as np

    return np.ones(1)


def _tree(
    asked: argparse.Namespace,
    found: Shares,
    epsilon: np.ndarray,
    hops: np.ndarray,
    alone: float,
    files: list[str],
) -> dict[str, Any]:
    from dataclasses import asdict

    from p2psim.privacy.network_privacy import by_distance

    tree: dict[str, Any] = {
        "steps": asked.steps,
        "sigma": asked.sigma,
        "sensitivity": asked.sensitivity,
        "delta": asked.delta,
        "agents": len(hops),
        "notes": list(NOTES),
        "share_by_distance": [asdict(row) for row in by_distance(found.share, hops)],
        "epsilon_by_distance": [asdict(row) for row in by_distance(epsilon, hops)],
        "epsilon_of_share_1": alone,
        "doubtful": found.doubtful.nonzero()[0].tolist(),
        "files": files,
    }
    if len(hops) <= MOST_IN_JSON:
        tree |= {"share": found.share.tolist(), "epsilon": epsilon.tolist()}
    return tree


def _draw(
    asked: argparse.Namespace, found: Shares, hops: np.ndarray, ratio: float, delta: float
) -> list[str]:
    import numpy as np

    from p2psim.privacy.network_privacy import by_distance, epsilons
    from p2psim.report import style
    from p2psim.report.account import SHARES, Drawn, draw_network_privacy

    folder = Path(asked.out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out: cannot write into {folder}: {error.strerror or error}") from None
    colluding = f", colluding with {asked.colluders}" if asked.colluders else ""
    drawn = Drawn(
        found.share,
        epsilons(np.array(SHARES), ratio, delta),
        by_distance(epsilons(found.share, ratio, delta), hops),
        f"{len(hops)} agents, {asked.steps} steps, Δ/σ\u00a0=\u00a0{ratio:.3g}{colluding}",
        delta,
        NOTES,
    )
    with style.look():
        figures = draw_network_privacy(drawn)
        return [str(path) for stem, figure in figures.items() for path in style.save(figure, folder, stem)]


def _colluders(given: str | None, agents: int) -> list[int]:
    if given is None:
        return []
    try:
        numbers = sorted({int(part) for part in given.split(",")})
    except ValueError:
        raise InputError(f"--colluders: agents' numbers, such as 3,5, are expected, got {given!r}") from None
    for number in numbers:
        check_place("--colluders", number, agents)
    return numbers


def _links(asked: argparse.Namespace) -> Links:
    if (asked.scenario is None) == (asked.topology is None):
        raise InputError("account network takes a SCENARIO or --topology YAML")
    return _of_topology(asked) if asked.scenario is None else _of_scenario(asked)


def _of_scenario(asked: argparse.Namespace) -> Links:
    """Graph of the scenario's first cell and replica."""
    from p2psim.scenario.cells import cells
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.algorithms import adapter_of
    from p2psim.simulation.workspace import Workspace

    scenario = Scenario.load(asked.scenario, asked.set)
    first = cells(scenario)[0].scenario
    try:
        with tempfile.TemporaryDirectory(prefix="p2psim-") as directory:
            case = Workspace(Path(directory)).case(first, 0)
            return adapter_of(first).links_of(first, case.arrays, 0)
    except InputError as error:
        raise InputError(*(scenario.locate(fault) for fault in error.faults)) from None


def _of_topology(asked: argparse.Namespace) -> Links:
    from pydantic import ValidationError

    from p2psim.core.options import Options
    from p2psim.network.section import AnyTopology, Given, draw_links
    from p2psim.scenario import yaml
    from p2psim.scenario.faults import faults_of
    from p2psim.scenario.nodes import Node, plain

    class Asked(Options):
        """The one thing that is given."""

        topology: AnyTopology

    written = yaml.read(asked.topology, "--topology")
    node = Node({"topology": written}, written.place)
    try:
        topology = Asked.model_validate(plain(node), context={"folder": str(Path.cwd())}).topology
        return draw_links(topology, Given(), seed=asked.seed, replica=0)
    except ValidationError as error:
        raise InputError(*faults_of(error, Asked, node)) from None
    except InputError as error:
        raise InputError(*(replace(fault, key=_named(fault)) for fault in error.faults)) from None


def _named(fault: Fault) -> str:
    """The key of a fault of a topology, which here is an argument."""
    return f"--topology{fault.key.removeprefix('network.topology')}" if not fault.path else fault.key


ACTIONS = {
    "releases": account_releases,
    "run": account_run,
    "calibrate": account_calibrate,
    "network": account_network,
}


def account(asked: argparse.Namespace) -> int:
    """``p2psim account``; takes parsed arguments, returns the exit code."""
    return ACTIONS[asked.action](asked)

"""Measure graphs of 100,000, a million and ten million agents: time and memory of the whole command.

    python benchmarks/large_graphs.py [--smoke] [--rounds 1]

All are private coordinate descent with the graph, the records, the losses and the ledger of graph.yaml, run by
``p2psim run`` in a process of its own: start, records and graph, checks, simulation, writing. Q_L is recorded
once per update of an agent, on average; the exact minimum is not computed. Where others use the machine CPU time says
more than wall time; the last graph wants 13 GB of memory.
"""

from collections import defaultdict

from measuring import Row, print_part, spread
from sweep import command

#: Measurements by name, one a round.
Found = dict[str, list[float]]


def workload(agents: int, degree: int, dimension: int, points: str, updates: int) -> tuple[str, ...]:
    """What is set in graph.yaml."""
    return (
        f"network.topology={{kind: random-regular, degree: {degree}}}",
        f"data.source.agents={agents}",
        f"data.source.dimension={dimension}",
        f"data.source.points={points}",
        f"learning.algorithm.commits={updates * agents}",
        f"privacy.allocation.releases={updates}",
        f"record.every={agents}",
    )


#: Updates an agent, degree, p, records an agent, and most seconds and gigabytes that were wanted.
WANTED = {
    100_000: (20, 10, 20, "{uniform: [10, 100]}", 60, 4),
    1_000_000: (5, 8, 10, "10", 45, 2.5),
    10_000_000: (2, 8, 5, "5", 480, 16),
}


def measured(rounds: int, smoke: bool) -> tuple[Found, list[Row]]:
    """What is measured, with a thousandth of the agents if it is only to be seen that it runs."""
    found: Found = defaultdict(list)
    told: list[Row] = []
    for agents, (updates, degree, dimension, points, seconds, gigabytes) in WANTED.items():
        n = agents // 1000 if smoke else agents
        for _ in range(rounds):
            one = command("graph.yaml", 1, *workload(n, degree, dimension, points, updates))
            found[f"{n} wall"].append(one["wall"])
            found[f"{n} cpu"].append(one["cpu"])
            found[f"{n} gb"].append(one["mb"] / 1024)
        what = f"{n:,} agents × {updates} updates, p = {dimension}, degree {degree}"
        told.append((f"{what}, s", spread(found[f"{n} wall"], 1), f"at most {seconds}"))
        told.append(("of CPU time, s", spread(found[f"{n} cpu"], 1), ""))
        told.append((f"{what}, peak GB", spread(found[f"{n} gb"]), f"at most {gigabytes}"))
    return found, told


if __name__ == "__main__":
    print_part(__doc__, measured, 1)

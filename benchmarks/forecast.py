"""What a forecast costs beside 1,000 replicas: CPU time of one thread, in the same process, as a ratio.

    python benchmarks/forecast.py [--smoke] [--rounds 1]

Some replicas are run, and their time is scaled to 1,000. Where orders of wakes are drawn, a forecast takes about three
seconds whatever the graph, and has a standard error of its own: it is compared with as many replicas as have the same.
"""

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Row, print_part, progress, rounds, spread
from threadpoolctl import threadpool_limits

from p2psim.analysis.forecasts import forecast as star
from p2psim.analysis.forecasts import graph_descent as graph
from p2psim.analysis.forecasts.variances import answer_variances
from p2psim.scenario.model import Scenario
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

STAR = """
name: benchmark
seed: 1
network: {topology: {kind: star, agents: 86}, exchange: request}
data:
  source: {kind: linear-regression, dimension: 10, points: 2000, noise: 0.1}
learning:
  algorithm: {kind: async-star, horizon: 1000, rho: {h: 0.5}, theta_max: 100}
  loss: squared
  regularizer: {l2: 1.0e-5}
privacy:
  mechanism: laplace
  epsilon: 1.0e+5
  sensitivity: {kind: declared, bound: 1000}
  allocation: horizon
record: {metrics: [relative_fitness], every: 100}
"""
GRAPH = """
name: benchmark
seed: 1
network: {topology: {kind: random-regular, agents: 20, degree: 4, seed: 0}, exchange: broadcast}
data:
  source: {kind: linear-regression, dimension: 5, points: {uniform: [20, 100]}, noise: 1.0, x: gaussian}
  redraw: never
learning:
  algorithm: {kind: coordinate-descent, mu: 0.5, commits: 1000, start: zero}
  loss: squared
  regularizer: {l2: 0.1}
privacy:
  mechanism: laplace
  epsilon: 20
  sensitivity: {kind: declared, bound: 40}
  allocation: uniform
record: {metrics: [objective_gap], every: 100}
"""
#: Of graphs: what is set.
GRAPHS = {
    "20 agents, p = 5, budgets that know all wakes": (),
    "20 agents, p = 5, releases end (cap of 25), as exact": (
        "privacy.allocation={kind: cap, releases: 25}",
        "privacy.when_spent=coast",
    ),
    "100 agents, p = 20, degree 10: n·p = 2,000": (
        "network.topology={kind: random-regular, agents: 100, degree: 10, seed: 0}",
        "data.source.dimension=20",
        "learning.algorithm.commits=2000",
        "privacy.allocation={kind: cap, releases: 100}",
    ),
}
SMALL = {
    "star": ("network.topology.agents=4", "data.source.points=50"),
    "graph": (
        "network.topology={kind: ring, agents: 4}",
        "data.source.dimension=2",
        "learning.algorithm.commits=200",
    ),
}


def seconds(work: Callable[[], Any]) -> float:
    """CPU time of a call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def replicas(scenario: Scenario, workspace: Workspace, number: int) -> tuple[float, float]:
    """CPU time of 1,000 replicas, from a few, and the standard deviation of the metric at their ends."""
    simulate(scenario, 0, workspace)  # compiles
    ends = list[float]()
    took = seconds(
        lambda: ends.extend(
            float(simulate(scenario, replica, workspace).series[0].value[-1])
            for replica in range(1, number + 1)
        )
    )
    return 1000 * took / number, float(np.std(ends, ddof=1))


def of_star(workspace: Workspace, smoke: bool) -> dict[str, float]:
    """How many times cheaper the forecasts of owners alike and all different are, and their seconds."""
    scenario = Scenario.parse(STAR, "", SMALL["star"] if smoke else ())
    given = star.setting(scenario, workspace.case(scenario, 0))

    def forecast(of: Any) -> float:
        plan = of.plan(np.full(len(of.frequencies), 1e5))
        variances = answer_variances(plan, of.frequencies, of.answers)
        return float(of.walk().split(variances).psi[-1])

    beside, _ = replicas(scenario, workspace, 5 if smoke else 20)
    alike, different = given.alike(len(given.frequencies)), given
    forecast(given)
    return {
        "star, owners alike": beside / min(seconds(lambda: forecast(alike)) for _ in range(3)),
        "star, all owners different": beside / seconds(lambda: forecast(different)),
    }


def of_graph(workspace: Workspace, settings: tuple[str, ...], smoke: bool) -> tuple[float, float]:
    """How many times cheaper the forecast of a graph is: what replicas record, and distances of models as well."""
    scenario = Scenario.parse(GRAPH, "", (*settings, *SMALL["graph"]) if smoke else settings)
    given = graph.setting(scenario, workspace.case(scenario, 0))
    beside, deviation = replicas(scenario, workspace, 5 if smoke else 20)
    forecasts = list[Any]()
    took = seconds(lambda: forecasts.append(graph.forecast(given)))
    # As many replicas as have the standard error of drawn orders.
    error = float(forecasts[0].error[-1])
    both = took + seconds(lambda: forecasts[0].apart)
    as_many = (deviation / error) ** 2 / 1000 if error else 1.0
    progress(
        f"1,000 replicas {beside:.2f} s, forecast {took:.2f}, with distances {both:.2f}, × {as_many:.1f}"
    )
    return beside / took * as_many, beside / both * as_many


def measured(times: int, smoke: bool) -> tuple[dict[str, list[float]], list[Row]]:
    """What is measured, small to show that it runs."""
    ratios: dict[str, list[float]] = defaultdict(list)
    wanted = {"star, owners alike": "at least 5,000", "star, all owners different": "at least 100"}
    for _ in rounds(times):
        with tempfile.TemporaryDirectory() as folder, threadpool_limits(limits=1):
            workspace = Workspace(Path(folder))
            progress("forecasts of stars")
            for name, ratio in of_star(workspace, smoke).items():
                ratios[name].append(ratio)
            for name, settings in GRAPHS.items():
                progress(f"forecast of {name}")
                curve, both = of_graph(workspace, settings, smoke)
                ratios[name].append(curve)
                ratios[f"{name}; with each model's distance from its optimum"].append(both)
    return ratios, [
        (f"1,000 replicas / forecast: {name}", spread(values, 1), wanted.get(name, "at least 10"))
        for name, values in ratios.items()
    ]


if __name__ == "__main__":
    print_part(__doc__, measured, 1)

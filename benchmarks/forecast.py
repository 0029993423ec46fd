"""What a forecast costs beside 1,000 replicas: CPU time of one thread in the same run, told as a ratio.

    python benchmarks/forecast.py [REPLICAS]

REPLICAS (20 when left out) are run, and their time is scaled to 1,000.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from p2psim.analysis.forecasts.forecast import setting
from p2psim.analysis.forecasts.star_setting import Setting
from p2psim.analysis.forecasts.variances import answer_variances
from p2psim.scenario.model import Scenario
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

TEXT = """
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
REPLICAS = 1000


def forecast_of(given: Setting) -> float:
    """E[ψ] at all k, and at the end."""
    variances = answer_variances(
        given.plan(np.full(len(given.frequencies), 1e5)), given.frequencies, given.answers
    )
    return float(given.walk().split(variances).psi[-1])


def seconds(work: Callable[[], object], times: int) -> float:
    """Least time of one call."""
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def main() -> int:
    """Measure and tell."""
    threadpool_limits(limits=1)
    run = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    scenario = Scenario.parse(TEXT)
    workspace = Workspace(Path(tempfile.mkdtemp(prefix="p2psim-")))
    given = setting(scenario, workspace.case(scenario, 0))
    simulate(scenario, 0, workspace)  # compiles
    start = time.process_time()
    for replica in range(run):
        simulate(scenario, replica, workspace)
    replicas = (time.process_time() - start) / run * REPLICAS
    alike, different = (
        seconds(lambda: forecast_of(given.alike(86)), 3),
        seconds(lambda: forecast_of(given), 1),
    )
    print(f"N = 86, p = 10, T = 1000; {REPLICAS:,} replicas: {replicas:.2f} s (from {run})")
    print(f"forecast, owners alike: {alike * 1e3:.1f} ms, {replicas / alike:,.0f} times cheaper")
    print(f"forecast, owners all different: {different:.1f} s, {replicas / different:.2g} times cheaper")
    return 0


if __name__ == "__main__":
    sys.exit(main())

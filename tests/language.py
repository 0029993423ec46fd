"""A valid scenario to spoil, and what the tests of the language share."""

from pathlib import Path

from p2psim.core.errors import Fault, InputError
from p2psim.scenario.model import Scenario

ROOT = Path(__file__).parents[1]
SHIPPED = sorted((ROOT / "scenarios").glob("*.yaml"))

VALID = """\
name: small
seed: 5
replicas: 2
network:
  topology: {kind: star, agents: 3}
  exchange: {kind: request, service: {exponential: 0.5}, busy: queue}
  clock: {kind: poisson, rate: {0: 1.0, 1: 2.0, 2: 3.0}}
  channel: {latency: {uniform: [0.0, 1.0]}, loss: 0.25}
data:
  source: {kind: linear-regression, dimension: 4, points: 50}
  public: {last: 100}
  features: [standardise, {kind: pca, components: 3}]
  scale: {x: {at: {quantile: 0.9}}, y: {center: true}}
learning:
  algorithm: {kind: async-star, horizon: 100, rho: {h: 0.5}, theta_max: 3}
  loss: {kind: squared}
  regularizer: {l2: 1e-5}
privacy:
  mechanism: laplace
  epsilon: 10
  sensitivity: {kind: clip, bound: 1.0}
  allocation: {kind: cap, releases: 3}
record: {metrics: [relative_fitness], every: {time: 2.0}}
sweep:
  privacy.epsilon: [10, 100]
"""


def faults(text: str, path: str = "s.yaml", overrides: list[str] | None = None) -> list[Fault]:
    """All faults of a scenario that has some."""
    try:
        Scenario.parse(text, path, overrides or [])
    except InputError as error:
        return error.faults
    raise AssertionError("accepted")


def messages(text: str, overrides: list[str] | None = None) -> list[str]:
    """All faults, as a person sees them."""
    return [str(fault) for fault in faults(text, overrides=overrides)]


def spoiled(old: str, new: str, text: str = VALID) -> tuple[str, str]:
    """The scenario with one change, and the place ``line:column`` of what stands there now."""
    assert text.count(old) == 1, old
    before = text[: text.index(old)]
    return text.replace(old, new), f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"

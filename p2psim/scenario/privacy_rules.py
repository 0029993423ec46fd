"""Rules on the ``privacy`` section: which noise, bound, allocation and accountant can be combined."""

from collections.abc import Callable, Iterator

from p2psim.core.errors import Fault
from p2psim.learning.batches import batch_of
from p2psim.privacy.allocations import Allocation
from p2psim.scenario.fields import ScenarioFields


def _noise(scenario: ScenarioFields) -> Iterator[Fault]:
    """Noise is scaled by a budget and a sensitivity."""
    privacy = scenario.privacy
    if not privacy.mechanism.is_private:
        return
    for key, what in (
        ("epsilon", "a budget (.inf is no noise)"),
        ("sensitivity", "a sensitivity, such as clip"),
    ):
        if getattr(privacy, key) is None:
            yield Fault(f"the {privacy.mechanism.kind} mechanism needs {what}", f"privacy.{key}")
    if (norm := privacy.mechanism.norm) not in ("l1", "l2"):
        yield Fault(f"{privacy.mechanism.kind} has the norm {norm!r}; must be l1 or l2", "privacy.mechanism")


def _sensitivity(scenario: ScenarioFields) -> Iterator[Fault]:
    """What a bound says of the noise, and of where it is used."""
    if (bound := scenario.privacy.sensitivity) is not None:
        yield from bound.faults(scenario.privacy, bool(scenario.learning.algorithm.star_exchanges))


def _accountants(scenario: ScenarioFields) -> Iterator[Fault]:
    """Whoever accounts must know the noise, and have the δ that it needs."""
    privacy = scenario.privacy
    if not privacy.mechanism.is_private:
        return
    from p2psim.privacy.accounting.accountants import ACCOUNTANTS
    from p2psim.privacy.accounting.noises import Subsampled

    noise = privacy.mechanism.noise
    if batch_of(scenario.learning.algorithm).amplifies:
        noise = Subsampled(noise, 0.5)  # or one for Poisson samples, which the same accountants know
    named = [(f"privacy.accountant.{i}", name) for i, name in enumerate(privacy.accountant)]
    named += [("privacy.enforce", privacy.enforce)] if privacy.enforce else []
    compose = getattr(privacy.allocation, "composed_by", None)
    named += [("privacy.allocation.compose", compose)] if compose else []
    what = "releases of batches of records" if isinstance(noise, Subsampled) else "noise"
    for key, name in named:
        if not ACCOUNTANTS[name].supports(noise):
            able = [other for other, accountant in ACCOUNTANTS.items() if accountant.supports(noise)]
            message = f"{name} cannot account for {privacy.mechanism.kind} {what}; {', '.join(able)} can"
            yield Fault(message, key)
    needing = [name for _, name in named if ACCOUNTANTS[name].needs_delta]
    if privacy.delta is None and (needing or privacy.mechanism.power != 1):
        who = f"{needing[0]} needs" if needing else f"{privacy.mechanism.kind} noise needs"
        yield Fault(f"{who} a δ: give a number between 0 and 1, below 1 over the records", "privacy.delta")
    if compose and privacy.accountant and compose != privacy.enforcing:
        message = f"composes by {compose}, but {privacy.enforcing} enforces the budget"
        yield Fault(f"{message}: give enforce: {compose}", "privacy.allocation.compose")


def _allocation(scenario: ScenarioFields) -> Iterator[Fault]:
    """What an allocation says of its keys."""
    allocation = scenario.privacy.allocation
    yield from allocation.faults(bool(scenario.learning.algorithm.star_exchanges))
    if allocation.clairvoyant and type(allocation).logarithms is Allocation.logarithms:
        yield Fault(f"{allocation.kind} is clairvoyant, and its class lacks logarithms", "privacy.allocation")


def _overlap(scenario: ScenarioFields) -> Iterator[Fault]:
    """Who holds the same record is told of a star's owners."""
    if scenario.privacy.overlap.holders > 1 and not scenario.learning.algorithm.star_exchanges:
        yield Fault("is for the owners of a star", "privacy.overlap.holders")


def _tail(scenario: ScenarioFields) -> Iterator[Fault]:
    """The tail of a binomial counts the answers only where each answer is anyone's, independently."""
    if getattr(scenario.privacy.allocation, "tail", None) is None:
        return
    network = scenario.network
    holds = {
        "exchange: request": network.exchange.kind == "request",
        "concurrency: 1": getattr(network.exchange, "concurrency", 1) == 1,
        "a channel without latency and loss": network.channel.ideal,
        "availability: always": network.availability.ideal,
    }
    if missing := [need for need in holds if not holds[need]]:
        yield Fault(f"needs {', '.join(missing)}; elsewhere give releases", "privacy.allocation.tail")


def _anchor(scenario: ScenarioFields) -> Iterator[Fault]:
    """Some algorithms go on without their data by mixing alone."""
    algorithm = scenario.learning.algorithm
    if scenario.privacy.when_spent == "anchored" and not algorithm.has_anchor:
        yield Fault(f"{algorithm.kind} has no anchor; give silent or coast", "privacy.when_spent")


PRIVACY_RULES: tuple[Callable[[ScenarioFields], Iterator[Fault]], ...] = (
    _noise, _sensitivity, _accountants, _allocation, _overlap, _tail, _anchor,
)  # fmt: skip

"""One audit: a cell's mechanism as configured, run many times on worst-case adjacent data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from p2psim.audit.audit_run import movement, prepare_run, sample
from p2psim.audit.canaries import pairs
from p2psim.audit.system import AuditSystem
from p2psim.core.randomness import Streams
from p2psim.privacy.accounting.accountants import ACCOUNTANTS
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import Noise, Subsampled
from p2psim.privacy.audit import (
    Canary,
    Finding,
    NoiseDistribution,
    Shared,
    findings,
    learned,
    lower_bound,
    most_shared,
    probabilities,
    thresholds_for,
    uniform_p_value,
)
from p2psim.privacy.plan import Plan

#: Values that the test of the noise's law looks at; samples and columns that the test of sharing compares.
_VALUES, _ROWS, _COLUMNS = 20_000, 2_000, 400

#: Runs, at least, that teach the law of noise that is not known; and a cut just below the largest loss.
_LEARNED, _NEAR = 500, 0.99

#: What scores by each law are called, after the canary.
_BY = "", ", learned law"

#: Relative error of a gradient that is solved for from a model, at most.
_ROUNDING = 1e-6

#: Exact up to a hair above: of every noise it needs the curve of one release alone.
_ACCOUNTANT = "pld"


@dataclass(frozen=True)
class Claim:
    """What releases of one agent are claimed to cost together.

    Attributes
    ----------
    noise : Noise
    losses : ndarray, shape (releases,)
        Sensitivity over scale.
    rate : float
        Probability that a record is in the batch of a release, in (0, 1].
    """

    noise: Noise
    losses: np.ndarray
    rate: float

    @property
    def sampled_losses(self) -> np.ndarray:
        """Losses log(1 + q(e^ε₀ − 1)) after sampling with the rate q, shape (releases,)."""
        return np.asarray(np.log1p(self.rate * np.expm1(self.losses)))

    @property
    def _charges(self) -> Charges:
        return Charges.of(self.noise if self.rate == 1 else Subsampled(self.noise, self.rate), self.losses)

    def delta(self, epsilon: float) -> float:
        """δ at ε."""
        return float(ACCOUNTANTS[_ACCOUNTANT].delta(self._charges, epsilon)[0])

    def epsilon(self, delta: float) -> float:
        """ε at δ; infinite where there is none."""
        return float(ACCOUNTANTS[_ACCOUNTANT].epsilon(self._charges, delta)[0])


@dataclass(frozen=True)
class Trial:
    """What an audit found.

    Attributes
    ----------
    audited : int
        Releases that were looked at.
    limit, made : int
        The most releases that are claimed, and how many the network let through before it was stopped.
    largest : float
        Largest loss of a release, as audited.
    epsilon, delta : float
        The claim for the audited releases: ε at δ.
    moves : float
        How far the worst record in hand moves a release without noise, over the claimed sensitivity.
    at_least : float
        Lower confidence bound on the true ε at δ.
    findings : tuple of Finding
    law : float or None
        P-value of the noise's law, as far as the published shows it.
    shared : Shared or None
    gamma : float
        Probability of a false alarm, at most; a third for each kind of test.
    """

    audited: int
    limit: int
    made: int
    largest: float
    epsilon: float
    delta: float
    moves: float
    at_least: float
    findings: tuple[Finding, ...]
    law: float | None
    shared: Shared | None
    gamma: float

    @property
    def faults(self) -> tuple[str, ...]:
        """Why the claim is refuted; empty where it stands."""
        shared = None if self.shared is None else self.shared.p_value
        refuted = {
            "more is shown than claimed": any(finding.rejects for finding in self.findings),
            "a record moves more than claimed": self.moves > 1 + _ROUNDING,
            "more releases than claimed": self.made > self.limit,
            "the noise does not follow its law": self.law is not None and self.law < self.gamma / 3,
            "noise is used twice": shared is not None and shared < self.gamma / 3,
        }
        return tuple(fault for fault, holds in refuted.items() if holds)


def audit_system(
    system: AuditSystem,
    plan: Plan,
    law: NoiseDistribution,
    streams: Streams,
    engine: str,
    delta: float,
    samples: int,
    gamma: float,
) -> Trial:
    """Audit the first of an audited system's agents.

    Parameters
    ----------
    system : AuditSystem
    plan : Plan
        The cell's.
    law : NoiseDistribution
        Of the claimed noise.
    streams : Streams
        Of the replica from which samples are counted: each takes the noise of the next one.
    engine : str
        What makes the events.
    delta : float
        δ of the claim.
    samples : int
        Runs on each of two adjacent data sets, for each canary.
    gamma : float
        Probability of a false alarm, at most.
    """
    run = prepare_run(system, plan, streams, engine)
    losses = run.losses[run.is_audited]
    claim = Claim(plan.mechanism.noise, losses[: run.audited], system.rate)
    scores, noise = [], []
    replica = streams.replica or 0
    canaries = pairs(system.limits, system.dimension)
    laws = [law]
    if law.cumulative is None:
        # Runs that are not counted teach the law of noise that nobody knows.
        first = max(_LEARNED, samples // 10)
        _, training = sample(system, laws, run, canaries[0], 0, streams, first, first)
        laws.append(learned(training))
        replica += first
    kept = max(_ROWS // (2 * len(canaries)), -(-_VALUES // (run.local.agents.size * system.dimension)))
    for pair in canaries:
        for world in (0, 1):
            start = replace(streams, replica=replica)
            of_world, published = sample(system, laws, run, pair, world, start, samples, kept)
            scores.append(of_world)
            noise.append(published)
            replica += samples
    order = 1 if plan.mechanism.norm == "l1" else 2
    results = _findings([pair.name for pair in canaries], scores, claim, gamma / 3)
    steps = np.zeros_like(run.scales) if system.grid is None else system.grid / run.scales
    fits = [_p_value(law, of_world, steps) for of_world in noise]
    return Trial(
        run.audited,
        int(plan.releases[system.agents[0]]),
        run.made,
        float(losses.max()),
        claim.epsilon(delta),
        delta,
        max(movement(system, run, pair, streams, order) for pair in canaries),
        lower_bound(results, delta),
        results,
        None if law.cumulative is None else min(1.0, len(fits) * min(fits)),
        _shared(law, np.concatenate(noise)),
        gamma,
    )


def _findings(
    names: Sequence[str], scores: Sequence[np.ndarray], whole: Claim, gamma: float
) -> tuple[Finding, ...]:
    """All releases together, and the one with the largest loss alone.

    Many small steps hide whether a bound is in L1 or L2: then only the sum of squares counts, and that is the same. A
    single release of pure noise tells, as no ratio beyond its loss is claimed.

    Parameters
    ----------
    names : sequence of str
        Of the canaries.
    scores : sequence of ndarray, shape (laws, samples, releases)
        On P and on Q for each canary, by the claimed law, and by one that was learned from other runs where that is a
        guess; more releases than are claimed, if more were made.
    whole : Claim
        Of all releases that are claimed.
    """
    parts = [(slice(None), whole, "")]
    if whole.losses.size > 1:
        largest = int(np.argmax(whole.losses))
        single = slice(largest, largest + 1)
        parts.append((single, replace(whole, losses=whole.losses[single]), ", one release"))
    results: tuple[Finding, ...] = ()
    laws = range(len(scores[0]))
    for part, claim, note in parts:
        canaries = [
            Canary(name + note + _BY[law], p[law][:, part].sum(axis=1), q[law][:, part].sum(axis=1))
            for name, p, q in zip(names, scores[::2], scores[1::2], strict=True)
            for law in laws
        ]
        e: tuple[float, ...] = thresholds_for(claim.sampled_losses)
        cuts = e
        if len(laws) > 1:
            # Laplace noise has its largest ratio with a probability of its own: no score of a guess is above it.
            e, cuts = (*e, e[-1]), (*e, _NEAR * e[-1])
        results += findings(canaries, claim.delta, e, gamma / len(parts), cuts)
    return results


def _p_value(law: NoiseDistribution, noise: np.ndarray, steps: np.ndarray) -> float:
    """P-value of the law by the noise on one data set, some of it where there is much; 1 if no law is known.

    Each data set is looked at alone: a gradient that is not what it should be moves noise to one side on P and to the
    other on Q.

    Parameters
    ----------
    law : NoiseDistribution
    noise : ndarray, shape (samples, releases, p)
        In units of its claimed scale.
    steps : ndarray, shape (releases,)
        Of the grid, in the same units; 0 for no grid.
    """
    if law.cumulative is None:
        return 1.0
    rng = np.random.default_rng(0)
    some = rng.permutation(noise.size)[:_VALUES] if noise.size > _VALUES else np.arange(noise.size)
    every = np.broadcast_to(steps[:, None], noise.shape)
    return uniform_p_value(probabilities(law, noise.ravel()[some], every.ravel()[some], rng))


def _shared(law: NoiseDistribution, noise: np.ndarray) -> Shared | None:
    """The columns that share most; some columns and samples of many."""
    columns = noise.reshape(len(noise), -1)
    kept = np.sort(np.random.default_rng(0).permutation(columns.shape[1])[:_COLUMNS])
    compared = columns[:_ROWS, kept]
    if law.cumulative is None:  # nothing says that it is symmetric
        compared = compared - np.median(compared, axis=0)
    return most_shared(compared)

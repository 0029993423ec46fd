"""One audit: a cell's mechanism as configured, run many times on worst-case adjacent data, and what each copy shows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from p2psim.audit.canaries import Pair, Record, gradients, pairs
from p2psim.audit.claims import Claim, Finding, findings_of, lower_bound
from p2psim.audit.noise import (
    ROWS,
    VALUES,
    NoiseDistribution,
    Shared,
    law_of,
    learned,
    log_ratio,
    most_shared,
    p_value,
)
from p2psim.audit.system import AuditSystem, releases_of
from p2psim.core.errors import SimulationError
from p2psim.core.randomness import Streams
from p2psim.network.simulation import simulate_events
from p2psim.privacy.accounting.noises import before_sampling
from p2psim.privacy.plan import Plan
from p2psim.privacy.releases import joined
from p2psim.privacy.shares import Releases, Totals
from p2psim.simulation.outcome import streams_of

#: Releases of an agent that are audited at most, and numbers in them where that is more than two releases.
MOST_RELEASES, MOST_NUMBERS = 10, 400

#: Releases up to which it is counted whether an agent makes more than its plan says.
MOST_COUNTED = 200

#: The largest loss of a release as audited, after sampling: where few samples tell most.
INFLATED = 1.0

#: Numbers in an array of copies' noise or records, at most.
_NUMBERS = 4_000_000


@dataclass(frozen=True)
class AuditRun:
    """What all copies share: the events, and each release's claim, in the order of the events.

    Attributes
    ----------
    events : ndarray of EVENT
        Of one copy.
    local, real : Releases
        The same releases by the agents of the small network and by those of the cell.
    losses : ndarray, shape (releases,)
        Claimed for the real records.
    scales : ndarray, shape (releases,)
        Of the noise, as follows from them, in units of the small network's gradients.
    plan : Plan
        What draws noise, in units of the cell's gradients.
    totals : Totals or None
        From `Plan.totals`.
    audited : int
        How many releases of the audited agent are claimed of those here.
    made : int
        How many it made before the network was stopped, here and later.
    """

    events: np.ndarray
    local: Releases
    real: Releases
    losses: np.ndarray
    scales: np.ndarray
    plan: Plan
    totals: Totals | None
    audited: int
    made: int

    @property
    def is_audited(self) -> np.ndarray:
        """Which releases are the audited agent's."""
        return self.local.agents == 0


def prepare_run(system: AuditSystem, plan: Plan, streams: Streams, engine: str) -> AuditRun:
    """Events of the small network until the audited agent has made what is audited of its releases.

    The network runs on for longer, so that an agent that makes more releases than it may is found out.

    Parameters
    ----------
    system : AuditSystem
    plan : Plan
        The cell's.
    streams : Streams
    engine : str
        What makes the events.

    Raises
    ------
    SimulationError
        If the audited agent makes no release.
    """
    agents = np.array(system.agents)
    limit = int(plan.releases[agents[0]])
    wanted = min(limit, MOST_RELEASES, max(2, MOST_NUMBERS // system.dimension))
    commits = 2 * agents.size * (min(limit, MOST_COUNTED) + 10)
    limits = None if plan.limits is None else plan.limits[agents]
    stream = simulate_events(system.network, streams, commits=commits, limits=limits, engine=engine)
    events = stream.read()
    local = releases_of(events)
    audited = local.places[local.agents == 0]
    if not audited.size:
        raise SimulationError(f"agent {agents[0]} makes no release in an audit")
    if limit > wanted:  # what comes later is not looked at
        events = events[: audited[:wanted][-1] + 1]
        local = releases_of(events)
    real = Releases(agents[local.agents], local.numbers, local.steps)
    totals = plan.totals([real])
    # The loss of the real records, whatever the scaled ones are claimed to lose.
    losses = plan.claimed(real, totals) * plan.stretch[real.agents]
    # Of a batch, what shows is the loss after sampling; see `p2psim.audit.claims.Claim.sampled_losses`.
    inflated = before_sampling(np.array(INFLATED), np.array(system.rate))
    factor = float(inflated / losses[local.agents == 0].max())
    losses *= factor
    scales = plan.sensitivity[real.agents] / losses * system.enlargement
    count = min(wanted, int(np.count_nonzero(local.agents == 0)))
    # The same mechanism with more to be seen, since all noise scales.
    larger = replace(plan, factor=factor)
    return AuditRun(events, local, real, losses, scales, larger, totals, count, audited.size)


def sample(
    system: AuditSystem,
    laws: Sequence[NoiseDistribution],
    run: AuditRun,
    pair: Pair,
    world: int,
    streams: Streams,
    samples: int,
    kept: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Run copies on one of two adjacent data sets.

    Parameters
    ----------
    system : AuditSystem
    laws : sequence of NoiseDistribution
        Of the claimed noise, and others to score by.
    run : AuditRun
    pair : Pair
        What the audited agent holds in either world; the others hold always the same.
    world : {0, 1}
    streams : Streams
        Of the first sample; each takes those of the next replica.
    samples : int
    kept : int
        Samples whose noise is kept.

    Returns
    -------
    scores : ndarray, shape (laws, samples, the audited agent's releases)
        Log-likelihood ratios of each release by each law, given those before it.
    noise : ndarray, shape (some samples, releases, p)
        In units of the claimed scale: what is published beyond the gradients; the noise itself where who is in a batch,
        and with it the gradient, is secret. Of the first samples, as many as its tests take.

    Raises
    ------
    SimulationError
        If something that is published is not finite.
    """
    p, rows = system.dimension, run.local.agents.size
    held = [pair[world]] + [pair[0]] * (len(system.agents) - 1)
    batch = max(1, _NUMBERS // (p * (rows + int(system.records.sum()) + len(held) * p)))
    audited, scale = run.is_audited, run.scales[:, None]
    divisors = system.divisors[run.local.agents][:, None]
    scores, noises = [], []
    for first in range(0, samples, batch):
        copies = min(batch, samples - first)
        start = replace(streams, replica=(streams.replica or 0) + first)
        noise = system.enlargement * _noise(run, start, copies, p)
        gradients, models = system.play(held, run.events, noise, start.key("batches"))
        if not np.isfinite(gradients).all():
            raise SimulationError("an audit publishes a value that is not finite")
        at = models[:, audited]
        to_p, to_q = (_means(system, record, at, divisors[audited]) / scale[audited] for record in pair)
        released = gradients[:, audited] / scale[audited]
        scores.append(np.stack([log_ratio(law, released, to_p, to_q, system.rate) for law in laws]))
        more = slice(0, max(0, kept - first))
        if system.rate < 1:
            noises.append(noise[more] / scale)
            continue
        mean, others = (_means(system, pair[w], models[more], divisors) for w in (world, 0))
        noises.append((gradients[more] - np.where(audited[:, None], mean, others)) / scale)
    return np.concatenate(scores, axis=1), np.concatenate(noises)


def movement(system: AuditSystem, run: AuditRun, pair: Pair, streams: Streams, order: int) -> float:
    """How far the first release without noise moves between the two data sets, relative to the claimed sensitivity.

    Parameters
    ----------
    system : AuditSystem
    run : AuditRun
    pair : Pair
    streams : Streams
        Of batches.
    order : int
        Of the norm in which the sensitivity is claimed.
    """
    copies = 1 if system.rate == 1 else int(np.ceil(20 / system.rate))  # the record is in some batch
    silence = np.zeros((copies, run.local.agents.size, system.dimension))
    others = [pair[0]] * (len(system.agents) - 1)
    first = int(np.argmax(run.is_audited))
    p, q = (
        system.play([record, *others], run.events, silence, streams.key("batches")).gradients[:, first]
        for record in pair
    )
    claimed = run.plan.sensitivity[system.agents[0]] * system.enlargement
    return float(np.linalg.norm(p - q, ord=order, axis=1).max() / claimed)


def _noise(run: AuditRun, streams: Streams, copies: int, p: int) -> np.ndarray:
    """Noise of each copy's releases, as a run of its replica draws it: shape (copies, releases, p)."""
    unit = np.empty((copies, run.local.agents.size, p))
    for copy in range(copies):
        key = replace(streams, replica=(streams.replica or 0) + copy).key("noise")
        unit[copy] = run.plan.mechanism.draw(key, run.real.agents, run.real.numbers, p)
    every = joined([run.real] * copies)
    return run.plan.noise(unit.reshape(-1, p), every, run.totals).reshape(unit.shape)


def _means(system: AuditSystem, record: Record, models: np.ndarray, divisors: np.ndarray) -> np.ndarray:
    """What would be released without noise at each model, if the record is there."""
    means, grid = gradients(system.limits, record.x, record.y, models) / divisors, system.grid
    return means if grid is None else grid * np.floor(means / grid + 0.5)


#: Runs, at least, that teach the law of noise that is not known.
_LEARNED = 500

#: Relative error of a gradient that is solved for from a model, at most.
_ROUNDING = 1e-6


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
    def faults(self) -> dict[str, str]:
        """Why the claim is refuted, each with the numbers that show it; empty where it stands."""
        faults = {}
        if any(finding.rejects for finding in self.findings):
            worst = max(self.findings, key=lambda finding: finding.shown - finding.claimed)
            least = f"δ({worst.threshold:.3g}) is at least {worst.shown:.4g}"
            faults["more is shown than claimed"] = f"{least}, claimed is {worst.claimed:.4g} ({worst.canary})"
        if self.moves > 1 + _ROUNDING:
            faults["a record moves more than claimed"] = f"{self.moves:.4g} times the sensitivity"
        if self.made > self.limit:
            faults["more releases than claimed"] = f"{self.made} or more instead of {self.limit}"
        if self.law is not None and self.law < self.gamma / 3:
            faults["the noise does not follow its law"] = f"p = {self.law:.2g}"
        if self.shared is not None and self.shared.p_value < self.gamma / 3:
            agree = f"the signs of two draws agree in {self.shared.agreement:.1%} of runs"
            faults["noise is used twice"] = agree
        return faults


def audit_system(system: AuditSystem, replica: int, samples: int, gamma: float) -> Trial:
    """Audit the first of an audited system's agents.

    Parameters
    ----------
    system : AuditSystem
    replica : int
        From which samples are counted: each takes the noise of the next one.
    samples : int
        Runs on each of two adjacent data sets, for each canary.
    gamma : float
        Probability of a false alarm, at most.
    """
    scenario, plan = system.cell.scenario, system.cell.setup.plan
    law, delta = law_of(plan.mechanism), scenario.privacy.delta or 0.0
    streams = streams_of(scenario, replica)
    run = prepare_run(system, plan, streams, scenario.network.engine)
    losses = run.losses[run.is_audited]
    claim = Claim(plan.mechanism.noise, losses[: run.audited], system.rate, plan.poisson)
    scores, noise = [], []
    canaries = pairs(system.limits, system.dimension)
    laws = [law]
    if law.cumulative is None:
        # Runs that are not counted teach the law of noise that nobody knows.
        runs = max(_LEARNED, samples // 10)
        _, training = sample(system, laws, run, canaries["one coordinate"], 0, streams, runs, runs)
        laws.append(learned(training))
        replica += runs
    kept = max(ROWS // (2 * len(canaries)), -(-VALUES // (run.local.agents.size * system.dimension)))
    for pair, world in product(canaries.values(), (0, 1)):
        start = replace(streams, replica=replica)
        of_world, published = sample(system, laws, run, pair, world, start, samples, kept)
        scores.append(of_world)
        noise.append(published)
        replica += samples
    order = 1 if plan.mechanism.norm == "l1" else 2
    results = findings_of(list(canaries), scores, claim, gamma / 3)
    fits = None
    if law.cumulative is not None:
        steps = np.zeros_like(run.scales) if system.grid is None else system.grid / run.scales
        fits = min(1.0, len(noise) * min(p_value(law, of_world, steps) for of_world in noise))
    return Trial(
        run.audited,
        int(plan.releases[system.agents[0]]),
        run.made,
        float(losses.max()),
        claim.epsilon(delta),
        delta,
        max(movement(system, run, pair, streams, order) for pair in canaries.values()),
        lower_bound(results, delta),
        results,
        fits,
        # Nothing says that noise of an unknown law is symmetric.
        most_shared(np.concatenate(noise), is_symmetric=law.cumulative is not None),
        gamma,
    )

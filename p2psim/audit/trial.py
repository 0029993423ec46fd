"""One audit: a cell's mechanism as configured, run many times on worst-case adjacent data."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from p2psim.audit.audit_run import movement, prepare_run, sample
from p2psim.audit.canaries import pairs
from p2psim.audit.claims import Claim, Finding, findings_of, lower_bound
from p2psim.audit.noise import ROWS, VALUES, Shared, law_of, learned, most_shared, p_value
from p2psim.audit.system import AuditSystem
from p2psim.simulation.outcome import streams_of

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

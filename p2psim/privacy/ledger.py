"""The ledger: what each agent released, and what that cost, drawn up from the events."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from p2psim.privacy.accounting.accountants import ACCOUNTANTS
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.plan import Claims, Plan
from p2psim.privacy.releases import Violations
from p2psim.privacy.shares import Releases, Totals


@dataclass(frozen=True)
class Caveats:
    """What limits or voids the guarantee of a run, beside the noise itself.

    Attributes
    ----------
    violations : Violations
    void : bool
        Whether the sensitivity was computed from the records, or is one that is known not to hold.
    data_dependent_step, public_graph_assumed : bool
        Whether the step sizes, or the graph or features, depend on the records. Then ε holds given those only, and is
        flagged.
    """

    violations: Violations
    void: bool = False
    data_dependent_step: bool = False
    public_graph_assumed: bool = False


def real_charges(plan: Plan, claims: Claims, caveats: Caveats) -> Charges:
    """What releases, and the starts, cost for the real records; infinite where nothing is guaranteed."""
    charges = mechanism_charges(plan, claims)
    void = caveats.violations.found | caveats.void
    return replace(charges, loss=np.where(void[charges.owners], np.inf, charges.loss))


def mechanism_charges(plan: Plan, claims: Claims) -> Charges:
    """What releases, and the starts, cost for the real records where the mechanism guarantees what it says."""
    if not plan.is_unscaled:
        losses = claims.losses * plan.stretch[claims.agents % plan.budget.size]
        claims = replace(claims, losses=losses)
    return plan.charges(claims, plan.limit.start_real)


@lru_cache(64, typed=True)
def _constant(agents: int, value: float | bool) -> np.ndarray:
    """The same value for each agent."""
    column = np.full(agents, value)
    column.setflags(write=False)
    return column


@lru_cache(8)
def _numbers(agents: int) -> np.ndarray:
    """The number of each agent."""
    column = np.arange(agents, dtype=np.int32)
    column.setflags(write=False)
    return column


def _rows(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Columns of runs, one a row."""
    return columns[0][None] if len(columns) == 1 else np.stack(columns)


class Account(NamedTuple):
    """What a run gives to account for.

    Attributes
    ----------
    lost, deliveries_lost : ndarray of int, shape (N,)
        Releases of each agent that reached nobody, and failed deliveries of its releases.
    releases : Releases
        All of the run.
    totals : Totals or None
        From `Plan.totals`.
    caveats : Caveats
    """

    lost: np.ndarray
    deliveries_lost: np.ndarray
    releases: Releases
    totals: Totals | None
    caveats: Caveats


def ledger(
    plan: Plan,
    lost: np.ndarray,
    deliveries_lost: np.ndarray,
    releases: Releases,
    totals: Totals | None,
    accountants: Sequence[str],
    caveats: Caveats,
) -> dict[str, np.ndarray]:
    """Account for all agents of one run; parameters and columns as of `ledgers`."""
    return ledgers(plan, [Account(lost, deliveries_lost, releases, totals, caveats)], accountants)[0]


def ledgers(
    plan: Plan, accounts: Sequence[Account], accountants: Sequence[str]
) -> list[dict[str, np.ndarray]]:
    """Account for all agents of several runs of one plan, as if they were agents of one.

    A release is charged when noise is drawn, sent or not, received or not; so is a start that depends on data.
    ``epsilon_<accountant>``, at ``delta_<accountant>``, is that of the real records, whatever ``scale_records``
    claims, and infinite where the mechanism as run guarantees nothing: no noise, a sensitivity read off the data,
    or a claimed bound that the data broke. A record that several may hold is charged for all of them
    (`p2psim.privacy.shares`). ``epsilon_claimed`` is what the enforcing accountant says of the losses as claimed.

    Parameters
    ----------
    plan : Plan
    accounts : sequence of Account
        Of each run; the caveats differ in violations alone.
    accountants : sequence of str

    Returns
    -------
    list of dict of ndarray, shape (N,) each
        For each run the columns of the run folder's ledger, from ``agent`` on.
    """
    runs, agents, caveats = len(accounts), plan.budget.size, accounts[0].caveats
    limit = plan.limit
    claims = Claims.of_runs(plan, [(account.releases, account.totals) for account in accounts])
    claimed = plan.charges(claims, limit.start)
    real = claimed if plan.claims_are_real else mechanism_charges(plan, claims)
    counts, steps, sizes = map(_rows, zip(*(each.caveats.violations for each in accounts), strict=True))
    violated = counts > 0
    # Where nothing is guaranteed, everything is lost with the first release.
    lost_all = (violated.ravel() | caveats.void) & (real.offsets[1:] > real.offsets[:-1])
    names = dict.fromkeys((*accountants, limit.enforce))
    claim = plan.epsilon(limit.enforce, claimed)
    if real is claimed and not lost_all.any():
        spent = {name: claim if name == limit.enforce else plan.epsilon(name, real) for name in names}
    else:
        spent = {name: plan.epsilon(name, real, lost_all) for name in names}
    spent = {name: epsilon.reshape(runs, agents) for name, epsilon in spent.items()}
    enforced = spent[limit.enforce]
    # Of one dimension where all runs have the same.
    columns: dict[str, np.ndarray] = {
        "agent": _numbers(agents),
        "releases": real.made.reshape(runs, agents),
        "lost": _rows([account.lost for account in accounts]),
        "deliveries_lost": _rows([account.deliveries_lost for account in accounts]),
        "budget": plan.budget if plan.mechanism.is_private else _constant(agents, np.inf),
        "epsilon_claimed": claim.reshape(runs, agents),
    }
    for name in accountants:
        columns[f"epsilon_{name}"] = spent[name]
        needs_delta = ACCOUNTANTS[name].needs_delta
        columns[f"delta_{name}"] = _constant(agents, limit.delta * limit.holders if needs_delta else 0.0)
    columns["violation_step"], columns["violation_size"] = steps, sizes
    columns["bound_violated"] = violated
    columns["over_budget"] = enforced > columns["budget"] * (1 + 1e-9)
    columns["not_private"] = np.isinf(enforced)
    columns["public_graph_assumed"] = _constant(agents, caveats.public_graph_assumed)
    columns["data_dependent_step"] = _constant(agents, caveats.data_dependent_step)
    columns["scaled_records"] = _constant(agents, plan.scale_records != 1)
    columns["clairvoyant"] = _constant(agents, plan.clairvoyant)
    return [
        {name: column[run] if column.ndim > 1 else column for name, column in columns.items()}
        for run in range(runs)
    ]

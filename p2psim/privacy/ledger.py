"""The ledger: what each agent released, and what that cost, drawn up from the events."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from p2psim.privacy.accountants import ACCOUNTANTS
from p2psim.privacy.plan import Plan
from p2psim.privacy.releases import ReleaseCounts


def ledger(
    plan: Plan,
    counts: ReleaseCounts,
    accountants: Sequence[str],
    *,
    violations: np.ndarray,
    empirical: bool,
    data_dependent_step: bool,
) -> dict[str, np.ndarray]:
    """Account for all agents.

    A release is charged when noise is drawn, sent or not, received or not. ``epsilon_<accountant>`` is that of the
    real records, whatever ``scale_records`` claims, and infinite where the mechanism as run guarantees nothing:
    no noise, a sensitivity read off the data, or a claimed bound that the data broke.

    Parameters
    ----------
    plan : Plan
    counts : ReleaseCounts
        At the end of the run.
    accountants : sequence of str
    violations : ndarray of int, shape (N,)
        Releases at which a record exceeded the claimed bound.
    empirical : bool
        Whether the sensitivity was computed from the records.
    data_dependent_step : bool
        Whether the step size was computed from the records. Then ε holds given the step only, and is flagged.

    Returns
    -------
    dict of ndarray, shape (N,) each
        The columns of the run folder's ledger, from ``agent`` on.
    """
    agents = plan.budget.size
    broken = violations > 0
    columns: dict[str, np.ndarray] = {
        "agent": np.arange(agents, dtype=np.int32),
        "releases": counts.made,
        "lost": counts.lost,
        "budget": plan.budget if plan.mechanism.is_private else np.full(agents, np.inf),
    }
    claims = [plan.claimed(i, 0, int(made)) for i, made in enumerate(counts.made)]
    columns["epsilon_claimed"] = np.array([ACCOUNTANTS["basic"](claim)[0] for claim in claims])
    real = [
        np.full(claim.size, np.inf) if empirical or broken[i] else claim * plan.scale_records
        for i, claim in enumerate(claims)
    ]
    for name in accountants:
        pairs = np.array([ACCOUNTANTS[name](losses) for losses in real]).reshape(agents, 2)
        columns[f"epsilon_{name}"], columns[f"delta_{name}"] = pairs[:, 0], pairs[:, 1]
    enforced = columns[f"epsilon_{accountants[0]}"]
    columns["bound_violated"] = broken
    columns["over_budget"] = enforced > columns["budget"] * (1 + 1e-9)
    columns["not_private"] = np.isinf(enforced)
    columns["public_graph_assumed"] = np.zeros(agents, bool)
    columns["data_dependent_step"] = np.full(agents, data_dependent_step)
    columns["scaled_records"] = np.full(agents, plan.scale_records != 1)
    columns["clairvoyant"] = np.zeros(agents, bool)
    return columns

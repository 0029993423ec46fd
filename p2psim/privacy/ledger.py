"""The ledger: what each agent released, and what that cost, drawn up from the events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p2psim.privacy.accountants import ACCOUNTANTS
from p2psim.privacy.plan import Plan
from p2psim.privacy.releases import Book, by_agent
from p2psim.privacy.shares import Releases, Totals
from p2psim.privacy.violations import Violations


@dataclass(frozen=True)
class Caveats:
    """What limits or voids the guarantee of a run, beside the noise itself.

    Attributes
    ----------
    violations : Violations
    void : bool
        Whether the sensitivity was computed from the records, or is one that is known not to hold.
    data_dependent_step, public_graph_assumed, clairvoyant : bool
        Whether the step sizes, the graph or features, or the schedule depend on the records, or on what nobody could
        know. Then ε holds given those only, and is flagged. A clairvoyant allocation is flagged in any case.
    """

    violations: Violations
    void: bool = False
    data_dependent_step: bool = False
    public_graph_assumed: bool = False
    clairvoyant: bool = False


def ledger(
    plan: Plan,
    book: Book,
    releases: Releases,
    totals: Totals | None,
    accountants: Sequence[str],
    caveats: Caveats,
    initial: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Account for all agents.

    A release is charged when noise is drawn, sent or not, received or not. ``epsilon_<accountant>`` is that of the
    real records, whatever ``scale_records`` claims, and infinite where the mechanism as run guarantees nothing:
    no noise, a sensitivity read off the data, or a claimed bound that the data broke.

    Parameters
    ----------
    plan : Plan
    book : Book
        At the end of the run.
    releases : Releases
        All of the run.
    totals : Totals or None
        From `Plan.totals`.
    accountants : sequence of str
    caveats : Caveats
    initial : ndarray, shape (N,), optional
        ε of a release that each agent made before the first event, for its start; where it is finite, the plan's budget
        is what that left.

    Returns
    -------
    dict of ndarray, shape (N,) each
        The columns of the run folder's ledger, from ``agent`` on.
    """
    agents = plan.budget.size
    order = by_agent(releases)
    owners, losses = releases.agents[order], plan.claimed(releases, totals)[order]
    if initial is not None:
        owners, losses = np.concatenate([np.arange(agents), owners]), np.concatenate([initial, losses])
        order = np.argsort(owners, kind="stable")
        owners, losses = owners[order], losses[order]
    offsets = np.searchsorted(owners, np.arange(agents + 1))
    budget = plan.budget if initial is None else plan.budget + np.where(np.isinf(initial), 0.0, initial)
    void = caveats.violations.found | caveats.void
    real = np.where(void[owners], np.inf, losses * plan.scale_records)
    made = np.diff(offsets)
    columns: dict[str, np.ndarray] = {
        "agent": np.arange(agents, dtype=np.int32),
        "releases": made,
        "lost": book.lost,
        "budget": budget if plan.mechanism.is_private else np.full(agents, np.inf),
        "epsilon_claimed": ACCOUNTANTS["basic"](losses, offsets)[0],
    }
    for name in accountants:
        columns[f"epsilon_{name}"], columns[f"delta_{name}"] = ACCOUNTANTS[name](real, offsets)
    enforced = columns[f"epsilon_{accountants[0]}"]
    columns["violation_step"], columns["violation_size"] = caveats.violations.steps, caveats.violations.sizes
    columns["bound_violated"] = caveats.violations.found
    columns["over_budget"] = enforced > columns["budget"] * (1 + 1e-9)
    columns["not_private"] = np.isinf(enforced)
    columns["public_graph_assumed"] = np.full(agents, caveats.public_graph_assumed)
    columns["data_dependent_step"] = np.full(agents, caveats.data_dependent_step)
    columns["scaled_records"] = np.full(agents, plan.scale_records != 1)
    columns["clairvoyant"] = np.full(agents, caveats.clairvoyant or plan.clairvoyant)
    return columns

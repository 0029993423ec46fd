"""Whatever the network does and whoever enforces it, no run spends more than a budget, and the ledger says what it did.

What was released is counted from the events, and priced here anew from the losses that the scenario states.
"""

import numpy as np
import pytest
from graph_cases import graph_scenario
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from star_cases import scenario

from p2psim.core.events import COMMIT, SEND
from p2psim.privacy.accounting.accountants import ACCOUNTANTS
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import DISCRETE_LAPLACE, GAUSSIAN, LAPLACE
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

DELTA = 1e-5
NOISES = {
    "laplace": (LAPLACE, {"privacy.mechanism": "laplace"}),
    "discrete-laplace": (
        DISCRETE_LAPLACE,
        {"privacy.mechanism": {"kind": "discrete-laplace", "grid": 0.02}},
    ),
    "gaussian": (GAUSSIAN, {"privacy.mechanism": "gaussian"}),
}
CLIP = {
    "l1": {"kind": "clip", "norm": "l1", "bound": 1.0},
    "l2": {"kind": "clip", "norm": "l2", "bound": 1.0},
}
LOSSES = [0.4, 0.2, 0.2, 0.9, 0.4, 0.9, 0.4, 0.4]
STATED = {"constant": {"kind": "constant", "loss": 0.4}, "list": {"kind": "list", "losses": LOSSES}}
SHARED = {"cap": {"kind": "cap", "releases": 6}, "geometric": {"kind": "geometric", "ratio": 0.7}}
AVAILABILITY = {
    "always": "always",
    "renewal": {"kind": "renewal", "up": 3.0, "down": 1.0},
    "bernoulli": {"kind": "bernoulli", "drop": 0.3},
    "leave": {"kind": "leave", "after": {"uniform": [2.0, 9.0]}},
}
AGAIN = {"none": "none", "same": {"kind": "same", "acknowledge": 0.5}, "fresh": {"kind": "fresh", "limit": 2}}

STAR = {
    "request": {"kind": "request"},
    "queue": {"kind": "request", "service": 0.3, "busy": "queue"},
    "poll": {"kind": "poll", "interval": 1.0, "response": {"exponential": 0.4}},
}
BROADCAST, EDGE = {"kind": "broadcast"}, {"kind": "gossip", "mode": "edge"}
GRAPH = {"broadcast": BROADCAST, "edge": EDGE} | {
    mode: {"kind": "gossip", "mode": mode} for mode in ("push", "pull", "push-pull")
}
ADMM = {"kind": "gossip-admm", "mu": 0.5, "rho": 0.7, "inner": 1, "commits": 60}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("workspace"))


def able(noise):
    return [name for name, one in ACCOUNTANTS.items() if one.supports(noise)]


def released(events, agent):
    """How many releases an agent made, by their numbers."""
    own = events[
        (events["agent"] == agent) & np.isin(events["kind"], (SEND, COMMIT)) & (events["release"] >= 0)
    ]
    return np.unique(own["release"]).size


def price(noise, allocation, count, enforce):
    """ε of as many first releases of a stated allocation."""
    losses = np.full(count, 0.4) if allocation == "constant" else np.array(LOSSES[:count])
    return float(ACCOUNTANTS[enforce].epsilon(Charges.of(noise, losses), DELTA)[0])


def check(outcome, noise, allocation, enforce):
    book = outcome.ledger
    assert (book[f"epsilon_{enforce}"] <= book["budget"] * (1 + 1e-9)).all()
    assert not book["over_budget"].any()
    assert not book["not_private"].any()
    for agent, (made, budget) in enumerate(zip(book["releases"], book["budget"], strict=True)):
        assert made == released(outcome.events, agent)
        if allocation in STATED:
            spent = price(noise, allocation, made, enforce)
            assert spent <= budget
            assert spent == pytest.approx(book[f"epsilon_{enforce}"][agent], rel=1e-9)


choices = st.fixed_dictionaries(
    {
        "mechanism": st.sampled_from(sorted(NOISES)),
        "who": st.integers(0, 7),
        "allocation": st.sampled_from([*STATED, *SHARED]),
        "lost": st.sampled_from([0.0, 0.4]),
        "absent": st.sampled_from(sorted(AVAILABILITY)),
        "again": st.sampled_from(sorted(AGAIN)),
        "seed": st.integers(0, 10**6),
    }
)


def changes(drawn):
    """The noise, who enforces, and dotted keys of what was drawn."""
    noise, made = NOISES[drawn["mechanism"]]
    enforce = able(noise)[drawn["who"] % len(able(noise))]
    return (
        noise,
        enforce,
        {
            **made,
            "seed": drawn["seed"],
            "network.channel": {"loss": drawn["lost"], "latency": 0.05, "retransmit": AGAIN[drawn["again"]]},
            "network.availability": AVAILABILITY[drawn["absent"]],
            "privacy.allocation": (STATED | SHARED)[drawn["allocation"]],
            "privacy.sensitivity": CLIP["l2" if drawn["mechanism"] == "gaussian" else "l1"],
            "privacy.delta": DELTA,
            "privacy.accountant": [enforce],
        },
    )


@settings(max_examples=8, deadline=None, phases=[Phase.generate])
@given(drawn=choices, exchange=st.sampled_from(sorted(STAR)))
def test_no_star_spends_more_than_its_budgets(workspace, drawn, exchange):
    noise, enforce, made = changes(drawn)
    made |= {
        "network.exchange": STAR[exchange],
        "privacy.epsilon": {0: 3.0, 1: 4.0, 2: 9.0},
        "record.events": True,
    }
    outcome = simulate(scenario(made), 0, workspace, check_events=True)
    check(outcome, noise, drawn["allocation"], enforce)


@settings(max_examples=8, deadline=None, phases=[Phase.generate])
@given(
    drawn=choices,
    exchange=st.sampled_from(sorted(GRAPH)),
    spent=st.sampled_from(["silent", "coast", "anchored"]),
)
def test_no_graph_spends_more_than_its_budgets(workspace, drawn, exchange, spent):
    again = "same" if drawn["again"] == "fresh" else drawn["again"]  # there is no query to answer
    noise, enforce, made = changes(drawn | {"again": again})
    made |= {
        "network.exchange": GRAPH[exchange],
        "privacy.when_spent": spent,
        "privacy.epsilon": {agent: 3.0 + agent for agent in range(9)},
    }
    if exchange == "edge":
        made["learning.algorithm"] = ADMM
    outcome = simulate(graph_scenario(made), 0, workspace, check_events=True)
    check(outcome, noise, drawn["allocation"], enforce)

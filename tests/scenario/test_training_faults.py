"""What algorithms that train one model refuse, before any record is trained from."""

import pytest

from p2psim.core.errors import InputError, MeaningError
from p2psim.scenario.model import Scenario
from p2psim.simulation.simulate import check
from p2psim.simulation.workspace import Workspace

SCENARIO = """\
name: s
network: {{topology: {{kind: {topology}, agents: 4}}, exchange: {exchange}}}
data: {{source: {{kind: linear-classification, dimension: 3, points: 20}}}}
learning: {{algorithm: {{kind: {algorithm}, step: 0.1, commits: 8}}, loss: logistic, regularizer: {{l2: 0.1}}}}
privacy: {{mechanism: {mechanism}, epsilon: 5, sensitivity: {{kind: clip, bound: 1.0}}}}
record: {{metrics: [objective]}}
"""


def made(topology: str, exchange: str, algorithm: str, mechanism: str = "laplace") -> Scenario:
    return Scenario.parse(
        SCENARIO.format(topology=topology, exchange=exchange, algorithm=algorithm, mechanism=mechanism)
    )


@pytest.mark.parametrize(
    ("exchange", "algorithm"), [("synchronous", "decentralised-sgd"), ("gossip", "gossip-learning")]
)
def test_no_budget_is_divided_by_a_horizon_that_a_graph_has_not(exchange: str, algorithm: str) -> None:
    with pytest.raises(InputError, match=r"privacy\.allocation: horizon is for a star.*give another"):
        made("ring", exchange, algorithm)
    assert made("ring", exchange, algorithm, "none").privacy.allocation.kind == "horizon"


@pytest.mark.parametrize(("exchange", "algorithm"), [("round", "fedavg"), ("request", "fedasync")])
def test_a_star_has_one(exchange: str, algorithm: str) -> None:
    assert made("star", exchange, algorithm).privacy.allocation.kind == "horizon"


def test_a_buffer_that_is_never_full_is_refused() -> None:
    """10 answers are the default, and the run has 8."""
    with pytest.raises(
        InputError, match=r"buffer: must be at most the answers of the run, commits: 8, .*got 10"
    ):
        made("star", "request", "fedbuff")


def test_a_missing_loss_is_named() -> None:
    text = SCENARIO.replace("loss: logistic, ", "").replace("[objective]", "[objective_gap]")
    of = {"topology": "star", "exchange": "round", "algorithm": "fedavg", "mechanism": "none"}
    for without in (text, text.replace("record: {{metrics: [objective_gap]}}\n", "")):
        with pytest.raises(InputError, match=r"learning\.loss: is missing"):
            Scenario.parse(without.format(**of))


def test_fewer_gradients_than_a_release_takes_are_no_matter_of_the_budget() -> None:
    tree = made("star", "round", "fedavg").resolved()
    tree["privacy"]["allocation"] = {"kind": "cap", "releases": 5}
    tree["learning"]["algorithm"]["local_steps"] = 6
    with pytest.raises(MeaningError, match=r"allows agent 0 5 gradients, and a release takes 6"):
        check(Scenario.from_dict(tree), Workspace(None))


@pytest.mark.parametrize(
    ("mixing", "said"),
    [("degree", "averaging alternates for ever"), ("links", "weights of agent 0 sum to 2")],
)
def test_a_graph_that_does_not_mix_is_found_before_the_run(mixing: str, said: str) -> None:
    tree = made("ring", "synchronous", "decentralised-sgd", "none").resolved()
    tree["learning"]["algorithm"]["mixing"] = mixing
    with pytest.raises(MeaningError, match=said):
        check(Scenario.from_dict(tree), Workspace(None))


def test_an_exchange_of_another_kind_is_answered_by_those_that_fit() -> None:
    with pytest.raises(InputError, match=r"needs broadcast, gossip or synchronous, got round"):
        made("ring", "round", "decentralised-sgd", "none")

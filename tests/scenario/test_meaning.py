import pytest
from language import VALID, messages, spoiled

from p2psim.network.metrics import NETWORK_METRICS
from p2psim.scenario.model import Scenario


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            [("{kind: request, service: {exponential: 0.5}, busy: queue}", "poll")],
            "7:10: network.clock: agents have no clock under poll: the learner's queries wake them; "
            "remove clock, or use request",
        ),
        ([("kind: star", "kind: ring")], "5:13: network.topology: async-star needs a star, got ring"),
        (
            [("{kind: request, service: {exponential: 0.5}, busy: queue}", "broadcast")],
            "6:13: network.exchange: async-star needs request or poll, got broadcast",
        ),
        (
            [("{kind: request, service: {exponential: 0.5}, busy: queue}", "gossip")],
            "6:13: network.exchange: async-star needs request or poll, got gossip",
        ),
        (
            [("l2: 1e-5", "l2: 0")],
            "17:21: learning.regularizer.l2: async-star divides by 2·l2, which must be a positive number, got 0",
        ),
        (
            [("  epsilon: 10\n", ""), ("sweep:\n  privacy.epsilon: [10, 100]\n", "")],
            "19:3: privacy.epsilon: the laplace mechanism needs a budget (.inf is no noise)",
        ),
        (
            [("  sensitivity: {kind: clip, bound: 1.0}\n", "")],
            "19:3: privacy.sensitivity: the laplace mechanism needs a sensitivity, such as clip",
        ),
        (
            [("releases: 3", "tail: 1e-6")],
            "22:33: privacy.allocation.tail: needs a channel without latency and loss; elsewhere give releases",
        ),
        (
            [("loss: 0.25}", "loss: 1.0}")],
            "8:51: network.channel.loss: every message is lost, so that no commit would ever be made",
        ),
        (
            [("[relative_fitness]", "[relative_fitness, relative_fitnes]")],
            "23:38: record.metrics.1: unknown metric 'relative_fitnes'; known: relative_fitness, "
            "isolated_fitness, test_loss, objective, test_accuracy, local_loss, local_accuracy, test_rmse, "
            f"{', '.join(NETWORK_METRICS)}, epsilon_spent; did you mean relative_fitness?",
        ),
        (
            [("[relative_fitness]", "[relative_fitness, relative_fitness]")],
            "23:38: record.metrics.1: relative_fitness is named twice",
        ),
        (
            [("  epsilon: 10\n", "  epsilon: 10\n  accountant: []\n")],
            "21:15: privacy.accountant: is empty; add an accountant, such as basic",
        ),
        (
            [("{kind: squared}", "hinge")],
            "13:40: data.scale.y: the hinge loss takes labels ±1, which are not scaled",
        ),
        (
            [("{at: {quantile: 0.9}}", "{at: each-record}")],
            "13:19: data.scale.x.at: each-record is for labels that are classes: it changes what a label that "
            "is a number means",
        ),
        ([("seed: 5", "seed: 5\nindependent: [noise, noise]")], "3:22: independent.1: noise is named twice"),
    ],
)
def test_what_contradicts_itself(changes, said):
    text = VALID
    for old, new in changes:
        text = spoiled(old, new, text)[0]
    assert messages(text) == [f"s.yaml:{said}"]


def test_without_noise_nothing_about_it_is_needed():
    text = VALID.split("privacy:")[0]
    from p2psim.scenario.model import Scenario

    assert Scenario.parse(text).privacy.mechanism.kind == "none"


def test_contradictions_of_several_sections_at_once():
    text = VALID
    for old, new in (
        ("l2: 1e-5", "l2: 0"),
        ("kind: star", "kind: complete"),
        ("[relative_fitness]", "[psi]"),
    ):
        text = spoiled(old, new, text)[0]
    assert [message.split(": ")[1] for message in messages(text)] == [
        "network.topology",
        "learning.regularizer.l2",
        "record.metrics.0",
    ]


def test_the_array_engine_takes_every_network_that_ships() -> None:
    text = spoiled("loss: 0.25}", "loss: 0.25}\n  engine: array")[0]
    assert Scenario.parse(text, "s.yaml", []).network.engine == "array"

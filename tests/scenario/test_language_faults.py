"""Bad input: what is said, and where."""

import copy
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from language import VALID, faults, messages, spoiled

from p2psim.core.errors import InputError
from p2psim.core.nodes import plain
from p2psim.scenario.model import Scenario
from p2psim.scenario.yaml import read

TOPOLOGIES = (
    "star, complete, ring, grid, star-of-agents, binary-tree, hypercube, exponential, random-regular, erdos-renyi, "
    "small-world, watts-strogatz, scale-free, barabasi-albert, two-cluster, planted-partition, stochastic-block, knn, "
    "similarity, file, networkx, one-peer-exponential, random-matching, random-waypoint, changing-file, rewired"
)


@pytest.mark.parametrize(
    ("old", "new", "key", "said"),
    [
        (
            "theta_max: 3",
            "theta_max: -3",
            "learning.algorithm.theta_max",
            "must be a positive number, got -3",
        ),
        (
            "horizon: 100",
            "horizon: 0",
            "learning.algorithm.horizon",
            "must be a whole number of at least 1, got 0",
        ),
        (
            "horizon: 100",
            "horizon: 1.5",
            "learning.algorithm.horizon",
            "must be a whole number of at least 1, got 1.5",
        ),
        ("loss: 0.25", "loss: 1.25", "network.channel.loss", "must be a number from 0 to 1, got 1.25"),
        ("loss: 0.25", "loss: .nan", "network.channel.loss", "must be a number from 0 to 1, got .nan"),
        ("bound: 1.0", "bound: .inf", "privacy.sensitivity.bound", "must be a positive number, got .inf"),
        ("l2: 1e-5", "l2: -1e-5", "learning.regularizer.l2", "must be a number of at least 0, got -1e-05"),
        (
            "l2: 1e-5",
            "l2: '1e-5'",
            "learning.regularizer.l2",
            "must be a number of at least 0 or inverse-size, got '1e-5'",
        ),
        (
            "l2: 1e-5",
            "l2: null",
            "learning.regularizer.l2",
            "must be a number of at least 0 or inverse-size, got null",
        ),
        (
            "l2: 1e-5",
            "l2: true",
            "learning.regularizer.l2",
            "must be a number of at least 0 or inverse-size, got true",
        ),
        ("center: true", "center: yes", "data.scale.y.center", "must be true or false, got 'yes'"),
        ("name: small", "name: 5", "name", "must be text, got 5"),
        (
            "h: 0.5",
            "h: -0.5",
            "learning.algorithm.rho.h",
            "must be a positive number of at most 1e+100, got -0.5",
        ),
        (
            "exponential: 0.5",
            "exponential: 0",
            "network.exchange.service.exponential",
            "must be a positive number, got 0",
        ),
        (
            "[0.0, 1.0]",
            "[0.0]",
            "network.channel.latency.uniform",
            "must be a list of 2, each a number of at least 0, got a list of 1",
        ),
        ("{time: 2.0}", "{time: 0}", "record.every.time", "must be a positive number, got 0"),
        (
            "busy: queue",
            "busy: queues",
            "network.exchange.busy",
            "unknown busy 'queues'; known: refuse, queue; did you mean queue?",
        ),
        (
            "kind: star",
            "kind: starr",
            "network.topology",
            f"unknown kind 'starr'; known: {TOPOLOGIES}; did you mean star?",
        ),
        (
            "kind: pca",
            "kind: pcaa",
            "data.features.1",
            "unknown kind 'pcaa'; known: standardise, pca, whiten, random-fourier, als; did you mean pca?",
        ),
        (
            "kind: async-star",
            "kind: asyncstar",
            "learning.algorithm",
            "unknown kind 'asyncstar'; known: async-star, synchronous-descent, synchronous-averaging, "
            "coordinate-descent, model-propagation, gossip-admm, averaging, push-sum, "
            "decentralised-sgd, gossip-learning, fedavg, fedasync, fedbuff; "
            "did you mean async-star?",
        ),
        (
            "mechanism: laplace",
            "mechanism: gausian",
            "privacy.mechanism",
            "unknown kind 'gausian'; known: none, laplace, gaussian, discrete-laplace; "
            "did you mean gaussian?",
        ),
        (
            "components: 3",
            "components: [3]",
            "data.features.1.components",
            "must be a whole number of at least 1, got a list of 1",
        ),
        ("[relative_fitness]", "{a: 1}", "record.metrics", "must be a list, each text, got a mapping"),
    ],
)
def test_a_wrong_value(old, new, key, said):
    text, place = spoiled(old, new)
    line, column = map(int, place.split(":"))
    # What is wrong stands behind the last key that was written, if one was.
    column += new.rfind(": ") + 2 if ": " in old else 0
    (fault,) = faults(text)
    assert str(fault) == f"s.yaml:{line}:{column}: {key}: {said}"


@pytest.mark.parametrize(
    ("old", "new", "key", "said"),
    [
        ("busy: queue", "bussy: queue", "network.exchange.bussy", "unknown key; did you mean busy?"),
        (
            "theta_max: 3",
            "theta_max: 3, thetamax: 4",
            "learning.algorithm.thetamax",
            "unknown key; did you mean theta_max?",
        ),
        ("replicas: 2", "replicates: 2", "replicates", "unknown key; did you mean replicas?"),
        ("{last: 100}", "{last: 100, zzz: 1}", "data.public.zzz", "unknown key; known: last"),
    ],
)
def test_an_unknown_key(old, new, key, said):
    text, _ = spoiled(old, new)
    (fault,) = faults(text)
    name = key.split(".")[-1]
    at = re.search(rf"\b{name}:", text).start()
    line, column = text[:at].count("\n") + 1, at - text[:at].rfind("\n")
    assert str(fault) == f"s.yaml:{line}:{column}: {key}: {said}"


@pytest.mark.parametrize("wrong", ["horizn", "Horizon"])
def test_a_required_key_that_is_misspelt_is_not_missing_as_well(wrong):
    text, _ = spoiled("horizon: 100", f"{wrong}: 100")
    (fault,) = faults(text)
    assert fault.message == "unknown key; did you mean horizon?"


@pytest.mark.parametrize("word", ["file", "filename", "csv", "table"])
def test_a_file_is_named_by_path(word):
    text, _ = spoiled("kind: star, agents: 3", f"kind: file, {word}: g.txt")
    assert "network.topology." + word + ": unknown key; did you mean path?" in "\n".join(messages(text))
    assert "is required" not in "\n".join(messages(text))


def test_a_key_outside_its_section_is_named_with_it():
    text, _ = spoiled("replicas: 2", "replicas: 2\nepsilon: 3")
    (fault,) = faults(text)
    assert str(fault).endswith(": epsilon: unknown key; did you mean privacy.epsilon?")


def test_what_is_required():
    text, _ = spoiled("horizon: 100, ", "")
    line = VALID.splitlines().index(next(row for row in VALID.splitlines() if "async-star" in row)) + 1
    assert messages(text) == [
        f"s.yaml:{line}:14: learning.algorithm.horizon: is required: a whole number of at least 1"
    ]
    text, _ = spoiled("kind: star, ", "")
    assert messages(text) == [f"s.yaml:5:13: network.topology: needs a kind; known: {TOPOLOGIES}"]


def test_a_bare_name_that_needs_more():
    text, _ = spoiled("{kind: cap, releases: 3}", "cap")
    (fault,) = faults(text)
    assert (fault.key, fault.message) == ("privacy.allocation", "give exactly one of releases and tail")
    text, _ = spoiled("{kind: clip, bound: 1.0}", "clip")
    (fault,) = faults(text)
    assert fault.key == "privacy.sensitivity.bound"
    assert fault.message == "is required: a positive number"


def test_all_errors_at_once_in_the_order_of_the_file():
    text = VALID
    for old, new in (
        ("seed: 5", "seed: five"),
        ("loss: 0.25", "loss: -1"),
        ("horizon: 100", "horizn: 100"),
        ("mechanism: laplace", "mechanism: laplac"),
        ("privacy.epsilon: [10, 100]", "privacy.epsilon: [10, x]\n  privacy.foo: [1, 2]"),
    ):
        text = spoiled(old, new, text)[0]
    found = faults(text)
    assert [(fault.line, fault.key) for fault in found] == [
        (2, "seed"),
        (8, "network.channel.loss"),
        (15, "learning.algorithm.horizn"),
        (19, "privacy.mechanism"),
        (25, "privacy.epsilon"),
        (26, "privacy.foo"),
    ]
    assert str(found[2]).endswith("unknown key; did you mean horizon?")


def mappings(tree, steps=()):
    """Every mapping of a scenario that is open to keys of the language only."""
    if isinstance(tree, dict):
        if steps not in {("sweep",), ("network", "clock", "rate")}:
            yield steps
        for key, entry in tree.items():
            yield from mappings(entry, (*steps, key))
    elif isinstance(tree, list):
        for i, entry in enumerate(tree):
            yield from mappings(entry, (*steps, i))


def scalars(tree, steps=()):
    if isinstance(tree, dict | list):
        for key, entry in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from scalars(entry, (*steps, key))
    else:
        yield steps


def dig(tree, steps):
    for step in steps:
        tree = tree[step]
    return tree


TREE = plain(read(VALID))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(mappings(TREE))), st.from_regex(r"\A[a-z_]{1,12}_x\Z"))
def test_an_unknown_key_is_never_ignored(steps, key):
    tree = copy.deepcopy(TREE)
    inside = dig(tree, steps)
    inside[key] = 1
    with pytest.raises(InputError) as caught:
        Scenario.from_dict(tree)
    assert ".".join(map(str, (*steps, key))) in {fault.key for fault in caught.value.faults}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(scalars(TREE))), st.sampled_from([{"zzz": []}, [["a"]], [1, 2]]))
def test_a_wrong_type_is_found_where_it_stands(steps, wrong):
    tree = copy.deepcopy(TREE)
    if steps[0] == "sweep" or steps == ("data", "features", 0):
        wrong = [["a"]]
    if steps == ("privacy", "epsilon") and wrong == [1, 2]:
        wrong = [1, -2]  # a list of numbers is that of agents 0 and 1
    dig(tree, steps[:-1])[steps[-1]] = wrong
    with pytest.raises(InputError) as caught:
        Scenario.from_dict(tree)
    written = steps[1:2] if steps[0] == "sweep" else steps[:-1] if steps[-1] == "kind" else steps
    dotted = ".".join(map(str, written))
    keys = {fault.key for fault in caught.value.faults}
    assert any(f"{key}.".startswith(f"{dotted}.") for key in keys), keys

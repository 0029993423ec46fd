import gc
import itertools
import json
import time
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from language import VALID, faults, messages, spoiled

from p2psim.core.errors import InputError
from p2psim.core.nodes import plain
from p2psim.scenario.cells import cells, content
from p2psim.scenario.model import Scenario
from p2psim.scenario.yaml import read

SWEEP = "sweep:\n  privacy.epsilon: [10, 100]\n"


def swept(sweep: str) -> Scenario:
    return Scenario.parse(VALID.replace(SWEEP, sweep))


def test_no_sweep_is_one_cell():
    whole = swept("")
    (only,) = cells(whole)
    assert (only.index, only.swept) == (0, {})
    assert only.scenario == whole


def test_cells_are_kept_for_the_scenario_and_no_longer():
    scenario = swept(SWEEP)
    first, second = cells(scenario), cells(scenario)
    assert [a.scenario is b.scenario for a, b in zip(first, second, strict=True)] == [True, True]
    alive = [weakref.ref(kept) for kept in (scenario, *(cell.scenario for cell in first))]
    del scenario, first, second
    gc.collect()
    assert [reference() for reference in alive] == [None] * 3


@pytest.mark.parametrize(
    "sweep",
    [
        "privacy.epsilon: [10, 100]",
        "learning.algorithm.horizon: [10, 2e1]",
        "data.source.noise: [1, 2]\n  record.every: [5, 10]",
        "network.channel.loss: [0.1, 0.2]\n  privacy.allocation.releases: [2, 3]",
        "seed: [1, 2e0]\n  privacy.mechanism: [laplace, none]\n  independent: [[], [noise]]",
        "privacy.epsilon: [1, .inf, 3]\n  privacy.overlap.holders: [1, 2]",
    ],
)
def test_a_cell_is_what_it_would_be_alone_and_shares_what_is_not_swept(sweep):
    """Each cell equals the scenario of its own text, and has its hash, whatever the cell before it was."""
    grid = cells(swept(f"sweep:\n  {sweep}\n"))
    for cell in grid:
        alone = Scenario.parse(cell.scenario.to_yaml())
        assert alone == cell.scenario
        assert content(alone) == content(cell.scenario)
    keys = {key.split(".")[0] for key in grid[0].swept}
    for section in {"network", "data", "learning", "privacy"} - keys:
        assert len({id(getattr(cell.scenario, section)) for cell in grid}) == 1


def test_a_grid_in_file_order_the_last_key_fastest():
    made = cells(swept("sweep:\n  seed: [1, 2]\n  privacy.epsilon: [5, 6, 7]\n"))
    assert [cell.swept for cell in made] == [
        {"seed": seed, "privacy.epsilon": epsilon} for seed in (1, 2) for epsilon in (5.0, 6.0, 7.0)
    ]
    assert [list(cell.swept) for cell in made] == [["seed", "privacy.epsilon"]] * 6
    assert [cell.index for cell in made] == list(range(6))
    for cell in made:
        assert cell.scenario.seed == cell.swept["seed"]
        assert cell.scenario.privacy.epsilon == cell.swept["privacy.epsilon"]
        assert cell.scenario.sweep == {}
        assert cell.scenario.replicas == 2


def test_zip_advances_together_and_is_an_axis_like_others():
    made = cells(
        swept(
            "sweep:\n  seed: [1, 2]\n"
            "  zip: {privacy.epsilon: [5, 6], data.source.points: [50, 60]}\n"
            "  data.seed: [3, 4]\n"
        )
    )
    expected = [(s, e, p, d) for s in (1, 2) for e, p in ((5, 50), (6, 60)) for d in (3, 4)]
    assert [tuple(cell.swept.values()) for cell in made] == expected
    assert list(made[0].swept) == ["seed", "privacy.epsilon", "data.source.points", "data.seed"]


def test_what_columns_hold():
    def column(key, values):
        return [cell.swept[key] for cell in cells(swept(f"sweep:\n  {key}: {values}\n"))]

    assert column("privacy.epsilon", "[1, 2.5, .inf]") == [1.0, 2.5, float("inf")]
    assert column(
        "privacy.allocation", "[horizon, {kind: cap, releases: 3}, {kind: geometric, ratio: 0.99}]"
    ) == [
        "horizon",
        "cap(releases=3)",
        "geometric",
    ]
    assert column("learning.algorithm.rho", "[43, {h: 0.5}]") == ["43", "h=0.5"]
    assert column("network.channel.latency", "[0, {uniform: [0, 2.5]}]") == ["0", "uniform=[0, 2.5]"]
    assert column(
        "network.exchange", "[{kind: request, service: {exponential: 0.5}, busy: queue}, request]"
    ) == [
        "request(service=exponential=0.5, busy=queue)",
        "request",
    ]
    assert column("privacy.epsilon", "[1, {0: 1, 1: 2, 2: 3}]") == ["1", "{0=1, 1=2, 2=3}"]
    assert column("network.clock", "[{kind: poisson}, {kind: poisson, rate: {0: 1, 1: 1, 2: 4}}]") == [
        "poisson",
        "poisson(rate={0=1, 1=1, 2=4})",
    ]
    assert column("data.shuffle", "[true, false]") == [True, False]
    assert column("data.seed", "[null, 3]") == ["null", "3"]
    assert column("learning.algorithm.form", "[printed, corrected]") == ["printed", "corrected"]
    assert column("data.features", "[[], [standardise, {kind: pca, components: 2}]]") == [
        "[]",
        "[standardise, pca(components=2)]",
    ]
    assert column("data.features.1.components", "[2, 3]") == [2, 3]


def test_a_swept_key_may_be_left_out_of_its_section():
    text = VALID.replace("horizon: 100, ", "").replace(
        SWEEP, "sweep: {learning.algorithm.horizon: [10, 20]}\n"
    )
    whole = Scenario.parse(text)
    assert [cell.scenario.learning.algorithm.horizon for cell in cells(whole)] == [10, 20]
    assert Scenario.parse(whole.to_yaml()) == whole


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=4, unique=True), st.integers(60, 70))
def test_more_values_move_no_content(values, more):
    def contents(seeds):
        return {cell.swept["seed"]: cell.content for cell in cells(swept(f"sweep:\n  seed: {seeds}\n"))}

    few = contents(values)
    many = contents([more, *reversed(values)])
    assert len(set(many.values())) == len(values) + 1
    assert {seed: many[seed] for seed in few} == few


def test_content_is_what_determines_results():
    tree = plain(read(VALID)) | {"sweep": {}}
    base = content(Scenario.from_dict(tree))

    def changed(section, **keys):
        return content(Scenario.from_dict(tree | {section: tree[section] | keys}))

    assert content(Scenario.from_dict(tree | {"name": "x", "replicas": 9})) == base
    assert changed("network", engine="simpy") == base
    assert changed("record", every=3, events=True) == base
    assert content(Scenario.from_dict(tree | {"seed": 6})) != base
    assert changed("network", exchange="request") != base
    assert changed("privacy", epsilon=11) != base
    assert changed("privacy", epsilon=10.0) == base
    assert changed("learning", regularizer={"l2": 2e-5}) != base
    # The content of a cell is that of its scenario, so that it can be run alone.
    for cell in cells(Scenario.parse(VALID)):
        assert cell.content == content(cell.scenario)


def test_cells_differ_even_where_only_what_is_recorded_does():
    made = cells(swept("sweep:\n  record.every: [1, 2]\n  network.engine: [auto, simpy]\n"))
    assert len({cell.content for cell in made}) == 4


def test_the_same_cell_twice_is_an_error():
    (message,) = messages(VALID.replace("[10, 100]", "[10, 20, 10.0]"))
    assert message == "s.yaml:25:29: sweep: cell 2 is the same as cell 0"


def test_a_million_cells_are_refused_without_being_made():
    seeds = ", ".join(map(str, range(1000)))
    text = VALID.replace(SWEEP, f"sweep:\n  seed: [{seeds}]\n  data.seed: [{seeds}]\n")
    begun = time.monotonic()
    (message,) = messages(text)
    assert message == (
        "s.yaml:24:1: sweep: makes 1,000,000 cells (1000 × 1000); "
        "more than 100,000 must be confirmed (--confirm-cells)"
    )
    confirmed = Scenario.parse(text, confirm_cells=True)
    with pytest.raises(InputError, match="1,000,000 cells"):
        cells(confirmed)
    assert time.monotonic() - begun < 60  # making them would take minutes


@pytest.mark.parametrize(
    ("sweep", "said"),
    [
        ("sweep: [1]", "24:8: sweep: must be a mapping, got a list of 1"),
        ("sweep: {seed: 3}", "24:15: sweep.seed: must be a list of at least one value, got 3"),
        ("sweep: {seed: []}", "24:15: sweep.seed: must be a list of at least one value, got an empty list"),
        (
            "sweep: {replicas: [1, 2]}",
            "24:9: sweep.replicas: belongs to the whole study and cannot differ between cells",
        ),
        ("sweep: {privacy.epsilom: [1, 2]}", "24:9: privacy.epsilom: unknown key; did you mean epsilon?"),
        (
            "sweep: {privacy..epsilon: [1]}",
            "24:9: sweep.privacy..epsilon: must be a dotted key, got 'privacy..epsilon'",
        ),
        (
            "sweep: {network.topology: [star], network.topology.agents: [3]}",
            "24:35: sweep.network.topology.agents: and network.topology overlap; sweep one of them",
        ),
        ("sweep: {seed: [1], zip: {seed: [2]}}", "24:26: sweep.seed: is swept twice"),
        (
            "sweep: {zip: {seed: [1, 2], data.seed: [1]}}",
            "24:14: sweep.zip: lists that advance together must be equally long; seed has 2, data.seed has 1",
        ),
        ("sweep: {zip: {}}", "24:14: sweep.zip: must be a mapping from keys to lists, got a mapping"),
        ("sweep: {zip: {seed: 1}}", "24:21: sweep.zip.seed: must be a list of at least one value, got 1"),
        ("sweep: {seed.x: [1]}", "24:9: 'x' cannot be set inside 5, which is not a mapping"),
        ("sweep: {data.features.7: [whiten]}", "24:9: '7' is no position in a list of 2, counted from 0"),
        (
            "sweep: {network.topology: [{kind: star, agentss: 3}]}",
            "24:41: network.topology.agentss: unknown key; did you mean agents?",
        ),
    ],
)
def test_a_sweep_that_cannot_be(sweep, said):
    assert f"s.yaml:{said}" in messages(VALID.replace(SWEEP, sweep + "\n"))


def test_what_means_nothing_in_one_cell_is_found_at_its_value():
    text = VALID.replace(SWEEP, "sweep:\n  network.exchange: [request, poll, broadcast]\n  seed: [1, 2]\n")
    found = [(fault.line, fault.column, fault.key) for fault in faults(text)]
    assert found == [(7, 10, "network.clock"), (25, 37, "network.exchange")]


def test_values_of_a_sweep_point_to_themselves():
    text, _ = spoiled("[10, 100]", "[10, -1, .nan, x]")
    assert [(fault.line, fault.column, fault.key) for fault in faults(text)] == [
        (25, 25, "privacy.epsilon"),
        (25, 29, "privacy.epsilon"),
        (25, 35, "privacy.epsilon"),
    ]


@pytest.mark.parametrize(
    "sweep",
    [
        # Rules of one section, of two, and of sections between which the contradiction lies in some cells alone.
        "learning.regularizer.l2: [1.0e-3, 0, inverse-size]",
        "privacy.enforce: [basic, rdp]\n  privacy.delta: [null, 1.0e-5]",
        "privacy.accountant: [[basic], [basic, basic], []]\n  record.metrics: [[relative_fitness], [lambda2]]",
        "data.scale.y: [1, null]\n  learning.loss: [squared, logistic]",
        "network.exchange: [request, gossip]\n  privacy.when_spent: [silent, coast]",
        "network.channel.loss: [0, 1]\n  privacy.overlap.holders: [1, 1000]",
        "data.source.agents: [3, 4]\n  privacy.epsilon: [1, {'0': 1, '1': 2, '2': 3}, {nobody: 1}]",
    ],
)
def test_a_rule_finds_in_each_cell_what_it_finds_in_that_cell_alone(sweep):
    """What rules found in the cell before is taken over only where they read nothing that differs."""
    keys = plain(read(f"sweep:\n  {sweep}\n"))["sweep"]
    alone = set()
    for values in itertools.product(*keys.values()):
        overrides = [f"{key}={json.dumps(value)}" for key, value in zip(keys, values, strict=True)]
        try:
            Scenario.parse(VALID.replace(SWEEP, ""), "", overrides)
        except InputError as error:
            alone |= {(fault.key, fault.message) for fault in error.faults}
    with pytest.raises(InputError) as caught:
        swept(f"sweep:\n  {sweep}\n")
    assert {(fault.key, fault.message) for fault in caught.value.faults} == alone

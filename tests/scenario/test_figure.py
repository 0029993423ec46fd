"""The ``figure`` section: what it may ask for, and that no result depends on it."""

import pytest

from p2psim.core.errors import InputError
from p2psim.core.nodes import plain
from p2psim.scenario.cells import cells, identity
from p2psim.scenario.model import Scenario

TEXT = """
name: drawn
network: {topology: {kind: star, agents: 3}, exchange: request}
data: {source: {kind: linear-regression, points: 20, dimension: 2}}
learning:
  algorithm: {kind: async-star, horizon: 10, rho: 1, theta_max: 3}
  loss: squared
  regularizer: {l2: 1.0e-5}
privacy: {mechanism: laplace, epsilon: 1, sensitivity: {kind: clip, bound: 1.0}, allocation: horizon}
record: {metrics: [relative_fitness]}
sweep: {privacy.epsilon: [1, 10], learning.algorithm.form: [printed, corrected]}
figure: """


def read(figure: str) -> Scenario:
    return Scenario.parse(TEXT + figure, "it.yaml")


def test_one_figure_is_a_list_of_one_and_a_name_is_a_figure_with_its_defaults() -> None:
    (bare,) = read("fitness").figure
    (long,) = read("{kind: fitness}").figure
    listed = read("[fitness, {kind: finals, against: privacy.epsilon, metric: relative_fitness, log: true}]")
    assert bare == long == listed.figure[0]
    assert bare.quantile == (0.25, 0.75)
    assert listed.figure[1].against == "privacy.epsilon"


def test_figures_are_resolved_and_read_again_but_are_part_of_no_hash() -> None:
    plain = read("[]")
    drawn = read("{kind: fitness, quantile: [0.05, 0.95], facet: learning.algorithm.form, title: 'ψ: here'}")
    assert identity(plain) == identity(drawn)
    assert [cell.content for cell in cells(plain)] == [cell.content for cell in cells(drawn)]
    assert all(cell.scenario.figure == [] for cell in cells(drawn))
    again = Scenario.parse(drawn.to_yaml(), "again.yaml")
    assert again.figure == drawn.figure
    assert again == drawn


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        ("fitnes", "unknown kind 'fitnes'; known: .*; did you mean fitness?"),
        ("{kind: fitness, agianst: time}", "figure.0.agianst: unknown key; did you mean against?"),
        ("{kind: fitness, against: tmie}", "figure.0.against: unknown axis 'tmie'; .*did you mean time?"),
        (
            "{kind: finals, against: privacy.epsilo}",
            "unknown swept key 'privacy.epsilo'; .* did you mean privacy.epsilon?",
        ),
        ("{kind: epsilon, against: time}", "epsilon has its own axis"),
        ("{kind: fitness, facet: privacy.delta}", "figure.0.facet: unknown swept key 'privacy.delta'"),
        (
            "{kind: finals, against: privacy.epsilon, facet: privacy.epsilon}",
            "is the horizontal axis already",
        ),
        ("{kind: curves, metric: fitness}", "unknown recorded metric 'fitness'"),
        ("{kind: fitness, quantile: [0.6, 0.9]}", "must lie on both sides of the median"),
        ("{kind: fitness, quantile: [0.1, 1.5]}", "must be a number from 0 to 1, got 1.5"),
        ("{kind: fitness, log: 1}", "figure.0.log: must be true or false, got 1"),
        (
            "{kind: graph, log: true}",
            "log: is of .*network, .*, not of graph",
        ),
        ("{kind: heatmap, quantile: [0.1, 0.9]}", "quantile: is of .*load, .*, not of heatmap"),
        ("{kind: targets}", "figure.0.target: is required"),
        ("{kind: fitness, target: 0.1}", "target: is of targets, not of fitness"),
        ("{kind: paired, reference: {privacy.epsilon: 1}, facet: privacy.epsilon}", "has one figure"),
        ("{kind: paired}", "figure.0.reference: is required"),
        ("{kind: collaboration, agent: -1}", "figure.0.agent"),
        ("{kind: fitness, agent: 1}", "agent: is of collaboration, not of fitness"),
        ("{kind: collaboration}", "figure.0.against: is required"),
        ("{kind: alone}", "alone needs isolated_fitness in record.metrics"),
        ("{kind: timing}", "timing needs record.events: true"),
        ("{kind: timing, metric: relative_fitness}", "figure.0.metric: changes nothing of timing"),
    ],
)
def test_what_a_figure_cannot_be(figure: str, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("?", r"\?")) as caught:
        read(figure)
    last = TEXT.count("\n") + 1
    assert all(fault.line == last and fault.column > 0 for fault in caught.value.faults)


def test_figures_by_keys_of_a_sweep_that_is_taken_out_are_one_fault() -> None:
    text = TEXT.replace(
        "sweep: {privacy.epsilon: [1, 10], learning.algorithm.form: [printed, corrected]}", "sweep: {}"
    )
    figures = "[{kind: finals, metric: relative_fitness, against: privacy.epsilon, facet: learning.algorithm.form}, "
    with pytest.raises(InputError) as caught:
        Scenario.parse(f"{text}{figures}{{kind: paired, reference: {{privacy.epsilon: 1}}}}]", "it.yaml")
    (fault,) = caught.value.faults
    assert "nothing is swept (privacy.epsilon, learning.algorithm.form); leave it out" in fault.message
    assert "--set 'figure=[]'" in fault.message
    assert (fault.line, fault.column > 0) == (TEXT.count("\n") + 1, True)


def test_figures_belong_to_the_study_and_cannot_be_swept() -> None:
    with pytest.raises(InputError, match="belongs to the whole study"):
        Scenario.parse(TEXT.replace("sweep: {", "sweep: {figure: [fitness], ") + "[]", "it.yaml")


@pytest.mark.parametrize("bad", ["\x07", "\n", "\x1b[2J", "\x85", "\u2028"])
def test_words_of_figures_have_no_control_characters(bad: str) -> None:
    """No SVG file may hold them, and a terminal obeys them."""
    tree = plain(read("{kind: fitness, title: fine}").nodes())
    for key, value in (("name", f"a{bad}"), ("figure", [{"kind": "fitness", "title": f"a{bad}b"}]),
                       ("labels", {"privacy.epsilon": f"a{bad}b"}), ("labels", {"privacy.epsilon": ["a", f"{bad}b"]}),
                       ("labels", {f"privacy{bad}": "a"})):  # fmt: skip
        with pytest.raises(InputError) as caught:
            Scenario.from_dict({**tree, key: value})
        assert all(one.isprintable() for fault in caught.value.faults for one in fault.message)

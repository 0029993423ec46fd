"""Graphs that change: what each kind is, and who is linked with whom at a moment."""

from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import p2psim
from p2psim.core.errors import InputError, MeaningError
from p2psim.network.changes import ActiveLinks, Change, LinkChanges, graph_at, rounds_of
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.spectrum import metropolis, spectral_facts, weight_matrix
from p2psim.network.topologies import Topology, draw_links
from p2psim.testing.parts import check_topology

Pair = tuple[int, int]


def drawn(topology: Topology, seed: int = 0) -> Graph:
    return draw_links(topology, TopologyInputs(), seed=seed, replica=0)


def rounds(graph: Graph, count: int) -> list[set[Pair]]:
    """Links after each of the first changes, by plain sets."""
    assert graph.changes is not None
    ends = [(a, b) for a in range(graph.agents) for b in graph.of(a).tolist()]
    there: set[Pair] = set()
    found = []
    for change in islice(graph.changes.read(graph), count):
        there = (there | {ends[i] for i in change.comes}) - {ends[i] for i in change.goes}
        found.append({(a, b) for a, b in there if a < b})
        assert {(b, a) for a, b in there} == there
    return found


class TestOnePeerExponential:
    def test_all_agree_after_one_period(self) -> None:
        """W = (I + P)/2 in each round, and the product of log₂ n rounds is 11ᵀ/n."""
        graph = drawn(p2psim.OnePeerExponential(agents=32, interval=1.0))
        product = np.eye(32)
        for one in rounds_of(graph):
            assert set(np.diff(one.indptr)) == {1}
            product = metropolis(one).toarray() @ product
        np.testing.assert_allclose(product, 1 / 32, atol=1e-15)
        assert spectral_facts(graph) == {
            "rounds": 5.0, "degree_min": 1.0, "degree_mean": 1.0, "degree_max": 1.0,
            "product_gap": pytest.approx(1, abs=1e-12),
        }  # fmt: skip

    def test_partners_are_at_powers_of_two_and_come_back(self) -> None:
        found = rounds(drawn(p2psim.OnePeerExponential(agents=8, interval=0.5)), 7)
        assert [{b - a for a, b in links} for links in found] == [{1}, {2}, {4}, {1}, {2}, {4}, {1}]

    @pytest.mark.parametrize("agents", [3, 6, 12])
    def test_other_numbers_are_refused(self, agents: int) -> None:
        with pytest.raises(MeaningError, match="power of two"):
            drawn(p2psim.OnePeerExponential(agents=agents, interval=1.0))


class TestRandomMatching:
    def test_all_pairings_are_equally_likely(self) -> None:
        """Four agents have three pairings: χ² with 2 degrees of freedom, above 13.8 once in a thousand times."""
        found = rounds(drawn(p2psim.RandomMatching(agents=4, interval=1.0), 3), 3000)
        counts = [sum((0, partner) in links for links in found) for partner in (1, 2, 3)]
        assert sum(counts) == 3000
        assert sum((count - 1000) ** 2 / 1000 for count in counts) < 13.8

    def test_of_an_odd_number_one_is_alone(self) -> None:
        for links in rounds(drawn(p2psim.RandomMatching(agents=7, interval=1.0)), 50):
            assert len({end for link in links for end in link}) == 6

    def test_has_no_period(self) -> None:
        with pytest.raises(MeaningError, match="changes for ever"):
            spectral_facts(drawn(p2psim.RandomMatching(agents=4, interval=1.0)))


class TestRewired:
    def test_begins_as_its_first_graph_and_moves_the_share(self) -> None:
        """Of 200 links a quarter moves each time: 5,000 of 20,000 in all, with a standard deviation of 61."""
        topology = p2psim.Rewired.model_validate(
            {"of": {"kind": "grid", "shape": [1, 201]}, "share": 0.25, "interval": 1.0}
        )
        found = rounds(drawn(topology), 101)
        assert found[0] == {(i, i + 1) for i in range(200)}
        assert {len(links) for links in found} == {200}
        moved = sum(len(links - before) for before, links in pairwise(found))
        assert abs(moved - 5000) < 4 * 61
        for before, links in pairwise(found):
            # A link keeps either end.
            ends = {end for link in before - links for end in link}
            assert all(ends & set(link) for link in links - before)

    @pytest.mark.parametrize(
        ("of", "why"),
        [
            ({"kind": "random-matching", "interval": 1.0}, "random-matching"),
            ({"kind": "erdos-renyi", "probability": 0.5, "seed": 1}, "has a seed"),
            ({"kind": "ring", "weights": "metropolis"}, "asks for weights"),
        ],
    )
    def test_refuses_what_it_could_not_keep(self, of: dict[str, Any], why: str) -> None:
        with pytest.raises(ValueError, match=why):
            p2psim.Rewired.model_validate({"of": of, "share": 0.5, "interval": 1.0})

    def test_refuses_a_graph_with_all_links(self) -> None:
        topology = p2psim.Rewired.model_validate(
            {"of": {"kind": "complete", "agents": 5}, "share": 0.5, "interval": 1.0}
        )
        with pytest.raises(MeaningError, match="has them all"):
            drawn(topology)


class TestRandomWaypoint:
    TOPOLOGY = p2psim.RandomWaypoint(agents=15, radius=0.3, speed=(0.05, 0.2), interval=0.5, pause=0.4)

    def test_links_are_those_within_the_radius(self) -> None:
        graph = drawn(self.TOPOLOGY, 5)
        assert graph.changes is not None
        from p2psim.core.randomness import generator

        where = self.TOPOLOGY.walk(15, generator(graph.changes.key, lane=1))
        for number, links in enumerate(rounds(graph, 60)):
            at = where(number * 0.5)
            near = {(a, b) for b in range(15) for a in range(b) if np.linalg.norm(at[a] - at[b]) <= 0.3}
            assert links == near

    def test_walks_are_straight_at_their_speed_within_the_square(self) -> None:
        fine, coarse = (self.TOPOLOGY.walk(15, np.random.default_rng(1)) for _ in range(2))
        times = np.arange(4001) / 100
        path = np.array([fine(time) for time in times])
        assert path.min() >= 0
        assert path.max() <= 1
        steps = np.linalg.norm(np.diff(path, axis=0), axis=2) * 100
        assert steps.max() <= 0.2 * (1 + 1e-9)
        rests = steps < 1e-9
        assert 0.02 < rests.mean() < 0.4
        # Most steps are within one way, at its speed.
        whole = ~rests & np.isclose(steps, np.roll(steps, 1, axis=0), rtol=1e-6)
        assert whole.mean() > 0.6
        assert steps[whole].min() >= 0.05 * (1 - 1e-9)
        # Whoever looks seldom sees the same walks.
        for time in (0.0, 7.0, 39.5):
            np.testing.assert_allclose(coarse(time), path[round(time * 100)], atol=1e-12)

    def test_the_lowest_speed_is_not_above_the_highest(self) -> None:
        with pytest.raises(ValueError, match="above the highest"):
            p2psim.RandomWaypoint(radius=0.3, speed=(0.2, 0.1), interval=0.5)


class TestChangingFile:
    def write(self, folder: Path, text: str) -> str:
        (folder / "links.csv").write_text(text)
        return str(folder / "links.csv")

    def test_spans(self, tmp_path: Path) -> None:
        text = "source,target,begin,end,weight\na,b,0,1,2.5\nb,a,1,2,2.5\nb,c,0.5,,1\nc,a,3,.inf,4\n"
        graph = drawn(p2psim.ChangingFile(path=self.write(tmp_path, text), nodes="order"))
        links = ActiveLinks(graph)
        seen = [[links.advance(time).of(agent).tolist() for agent in range(3)] for time in (0, 0.5, 1, 2, 3)]
        assert seen == [
            [[1], [0], []],
            [[1], [0, 2], [1]],
            [[1], [0, 2], [1]],
            [[], [2], [1]],
            [[2], [2], [0, 1]],
        ]
        assert links.weights_of(2).tolist() == [4, 1]
        assert links.degree(2) == 2
        alone = graph_at(graph, 0.0)
        assert np.diff(alone.indptr).tolist() == [1, 1, 0]
        assert alone.degrees().tolist() == [2.5, 2.5, 0]

    def test_nodes_are_agents_by_name(self, tmp_path: Path) -> None:
        topology = p2psim.ChangingFile(
            path=self.write(tmp_path, "source,target,begin,end\nz,x,0,1\nx,y,1,2\n")
        )
        graph = draw_links(topology, TopologyInputs(3, labels=("x", "y", "z")))
        assert [graph_at(graph, time).of(0).tolist() for time in (0.0, 1.0)] == [[2], [1]]

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("source,target,begin\n0,1,0\n", "needs columns"),
            ("source,target,begin,end\n0,1,0,2\n1,0,1,3\n", "links.csv:3: this span .* overlap"),
            ("source,target,begin,end\n0,1,2,2\n", "links.csv:2: a link must end after it begins"),
            ("source,target,begin,end\n0,1,-1,2\n", "links.csv:2: begin and end must be times"),
            ("source,target,begin,end\n0,0,0,2\n", "linked with itself"),
            ("source,target,begin,end\n0,1,0,2\n2,3,0,1\n", "falls into 2 parts"),
            ("source,target,begin,end\n", "has no links"),
            ("source,target,begin,end,weight\n0,1,0,1,2\n0,1,1,2,3\n", "given twice, with weights"),
            ("source,target,begin,end,weight\n0,1,0,1,-2\n", "must be a positive number"),
        ],
    )
    def test_what_is_wrong_with_a_file(self, tmp_path: Path, text: str, why: str) -> None:
        with pytest.raises(MeaningError, match=why):
            drawn(p2psim.ChangingFile(path=self.write(tmp_path, text)))


class Own(p2psim.ChangingTopology):
    """Changes that are given in Python."""

    kind: Literal["given"] = "given"
    agents: int = 4
    listed: tuple[Any, ...] = ()

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        return p2psim.Ring().build(4, random, given)

    def changes(self, graph: Graph, random: np.random.Generator, given: TopologyInputs) -> Iterator[Change]:
        for time, comes, goes in self.listed:
            yield Change(time, comes, goes)


class TestChangesOfOnesOwn:
    @pytest.mark.parametrize(
        ("listed", "why"),
        [
            ([(1.0, [(0, 1)], [])], "rising times from 0"),
            ([(0.0, [(0, 1)], []), (0.0, [(1, 2)], [])], "rising times"),
            ([(0.0, [(0, 2)], [])], "the graph of all links does not have"),
            ([(0.0, [(0, 1), (1, 0)], [])], "changes twice"),
            ([(0.0, [(0, 1)], []), (1.0, [(1, 0)], [])], "is added that exists already"),
            ([(0.0, [], [(0, 1)])], "removed that does not exist"),
        ],
    )
    def test_are_checked(self, listed: list[Any], why: str) -> None:
        graph = drawn(Own(listed=tuple(listed)))
        with pytest.raises(MeaningError, match=why):
            ActiveLinks(graph).advance(2.0)

    def test_part_check(self) -> None:
        assert list(check_topology(p2psim.RandomMatching(interval=1.0))) == []
        assert list(check_topology(p2psim.RandomWaypoint(radius=0.3, speed=(0.1, 0.2), interval=1.0))) == []
        wrong = Own(listed=((0.0, [(0, 2)], []),))
        assert any("all links does not have" in fault for fault in check_topology(wrong))

    def test_readers_do_not_disturb_one_another(self) -> None:
        graph = drawn(p2psim.RandomMatching(agents=9, interval=1.0))
        assert isinstance(graph.changes, LinkChanges)
        one, other = iter(graph.changes.read(graph)), iter(graph.changes.read(graph))
        for a, b in islice(zip(one, other, strict=False), 5):
            assert a.comes.tolist() == b.comes.tolist()


def test_weights_of_all_time_are_refused() -> None:
    graph = drawn(p2psim.OnePeerExponential(agents=4, interval=1.0))
    with pytest.raises(MeaningError, match="changes with time"):
        weight_matrix(graph)
    with pytest.raises(MeaningError, match="changes with time"):
        metropolis(graph)


SCENARIO: dict[str, Any] = {
    "name": "changing",
    "seed": 1,
    "network": {
        "topology": {"kind": "random-matching", "interval": 1.0},
        "exchange": {"kind": "gossip", "mode": "push-pull"},
    },
    "data": {
        "source": {"kind": "linear-regression", "agents": 6, "dimension": 3, "points": 20, "noise": 1.0}
    },
    "learning": {
        "algorithm": {"kind": "averaging", "time": 30.0, "start": "local"},
        "loss": "squared",
        "regularizer": {"l2": 0.1},
    },
    "privacy": {"mechanism": "none"},
    "record": {"metrics": ["consensus_distance"], "every": {"time": 5.0}, "events": True, "models": True},
}


def scenario(**keys: Any) -> p2psim.Scenario:
    return p2psim.Scenario.from_dict({**SCENARIO, **keys})


class TestLearning:
    def test_averaging_finds_the_mean(self) -> None:
        table = p2psim.simulate(scenario()).metrics
        gaps = table.loc[table["metric"] == "consensus_distance", "value"].to_numpy()
        assert gaps[-1] < 1e-4 * gaps[0]

    @pytest.mark.parametrize(
        ("algorithm", "exchange"),
        [
            ({"kind": "coordinate-descent", "mu": 0.1, "time": 5.0}, "broadcast"),
            ({"kind": "model-propagation", "mu": 0.1, "time": 5.0}, "broadcast"),
            ({"kind": "gossip-admm", "mu": 0.1, "time": 5.0}, {"kind": "gossip", "mode": "edge"}),
        ],
    )
    def test_algorithms_with_weights_refuse(self, algorithm: dict[str, Any], exchange: Any) -> None:
        network = {**SCENARIO["network"], "exchange": exchange}
        with pytest.raises(InputError, match="needs weights of links that stay"):
            scenario(network=network, learning={**SCENARIO["learning"], "algorithm": algorithm})

    @pytest.mark.parametrize("metric", ["lambda2", "objective_gap"])
    def test_so_do_metrics_of_a_graph_that_stays(self, metric: str) -> None:
        with pytest.raises(InputError, match=f"{metric} is of a graph that stays"):
            scenario(record={**SCENARIO["record"], "metrics": [metric]})

    @pytest.mark.parametrize(
        "availability",
        [
            {"kind": "remove", "by": "degree", "share": 0.3, "at": 1.0},
            {"kind": "bernoulli", "drop": 0.2, "depends": {"on": "degree"}},
        ],
    )
    def test_and_absences_by_degree(self, availability: dict[str, Any]) -> None:
        with pytest.raises(InputError, match="goes by degree"):
            scenario(network={**SCENARIO["network"], "availability": availability})

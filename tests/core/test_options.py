"""Parts of a scenario: strict, frozen; quantities for all, by agent or by group."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from p2psim.core.errors import MeaningError, OptionError
from p2psim.core.options import derived, per_agent
from p2psim.network.channels.channel import Channel
from p2psim.network.exchanges import AnyExchange
from p2psim.network.section import Clock

LABELS, GROUPS = ("north", "south", "west"), ("large", "small", "small")


def resolve(
    value: Any, labels: tuple[str, ...] = LABELS, groups: tuple[str, ...] | None = GROUPS
) -> list[float]:
    """As a scenario does: validate, then resolve."""
    return per_agent(Clock(rate=value).rate, labels, groups, key="some.key").tolist()


class TestPerAgent:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (2.5, [2.5, 2.5, 2.5]),
            (math.inf, [math.inf] * 3),
            ({"north": 1.0, "south": 2.0, "west": 3.0}, [1, 2, 3]),
            ({0: 1.0, 1: 2.0, 2: 3.0}, [1, 2, 3]),
            ({"0": 1.0, "south": 2.0, 2: 3.0}, [1, 2, 3]),
            ([1, 2.5, math.inf], [1, 2.5, math.inf]),
            ({"large": 1.0, "small": 2.0}, [1, 2, 2]),
            ({"large": 1.0, "small": 2.0, "west": 9.0}, [1, 2, 9]),
            ({"large": 1.0, "small": 2.0, 2: 9.0}, [1, 2, 9]),
        ],
    )
    def test_meaning(self, value: Any, expected: list[float]) -> None:
        assert resolve(value) == expected

    def test_shape_and_type(self) -> None:
        values = per_agent(3, LABELS, key="some.key")
        assert values.shape == (3,)
        assert values.dtype == np.float64

    def test_labels_that_look_like_indices_are_labels_where_all_are_named(self) -> None:
        assert resolve({1: 10.0, 2: 20.0}, ("1", "2"), None) == [10.0, 20.0]
        assert resolve({0: 5.0, 2: 20.0}, ("1", "2"), None) == [5.0, 20.0]  # no index is 2, no label is 0

    @pytest.mark.parametrize(
        ("value", "labels", "groups", "message"),
        [
            ({"east": 1.0}, LABELS, GROUPS, r"no agent or group is called 'east'; there are north, "),
            ({3: 1.0}, LABELS, GROUPS, "no agent or group is called '3'"),
            ([1, 2, 3, 4], LABELS, GROUPS, "no agent or group is called '3'; there are north, "),
            ([1, 2], LABELS, GROUPS, "agent west has no value"),
            ([1, 2], ("1", "2"), None, r"'1' is the label of agent 0 \(from 0\) and the index of"),
            ({"large": 1.0}, LABELS, None, "no agent or group is called 'large'"),
            ({"north": 1.0}, LABELS, GROUPS, "agent south has no value"),
            ({}, LABELS, GROUPS, "agent north has no value"),
            ({0: 1.0, 1: 2.0}, ("1", "2"), None, r"'1' is the label of agent 0 \(from 0\) and the index of"),
            ({0: 1.0, 1: 2.0}, ("1", "0"), None, r"'0' is the label of agent 1"),
            ({0: 1.0, "north": 2.0, "small": 3.0}, LABELS, GROUPS, "named twice, as '0' and as 'north'"),
            ({"0": 1.0, "1": 2.0}, ("a", "b"), ("1", "0"), "'0' names an agent and a group of others"),
        ],
    )
    def test_errors(self, value: Any, labels: Any, groups: Any, message: str) -> None:
        with pytest.raises(MeaningError, match=message) as caught:
            resolve(value, labels, groups)
        assert caught.value.faults[0].key == "some.key"

    @pytest.mark.parametrize(
        "value",
        [
            0.0,
            -1.0,
            math.nan,
            {"north": -1.0},
            {"north": math.nan},
            "1.0",
            True,
            None,
            [0.0],
            [1.0, -1.0],
            [[1.0]],
        ],
    )
    def test_only_positive_numbers(self, value: Any) -> None:
        with pytest.raises(OptionError):
            Clock(rate=value)

    def test_named_twice(self) -> None:
        with pytest.raises(OptionError, match="named twice: 1, '1'"):
            Clock(rate={1: 1.0, "1": 2.0})  # type: ignore[dict-item]

    def test_many_agents_take_linear_time(self) -> None:
        """A mapping over 10⁵ agents would take hours if each were compared with each."""
        labels = [f"agent {i}" for i in range(100_000)]
        values = per_agent({label: i + 1.0 for i, label in enumerate(labels)}, labels, key="k")
        assert (values == np.arange(1, 100_001)).all()


class TestParts:
    @pytest.mark.parametrize(
        ("part", "keys", "message"),
        [
            (Channel, {"lateny": 1.0}, "^lateny: unknown key; did you mean latency"),
            (Channel, {"loss": 1.5}, "^loss: must be a number from 0 to 1, got 1.5"),
            (Channel, {"loss": -0.1}, "^loss: must be a number from 0 to 1, got -0.1"),
            (Channel, {"loss": math.nan}, "^loss: must be a number from 0 to 1, got .nan"),
            (Channel, {"loss": "0.1"}, "^loss: must be a number from 0 to 1 or .*, got '0.1'"),
            (Channel, {"latency": -1.0}, "^latency: must be a number of at least 0, got -1.0"),
            (Channel, {"latency": math.inf}, "^latency: must be a number of at least 0, got .inf"),
            (Clock, {"rate": -1.0}, "^rate: must be a positive number, got -1.0"),
            (Clock, {"kind": "periodic"}, "^unknown kind 'periodic'; known: poisson"),
        ],
    )
    def test_closed_and_strict(self, part: Any, keys: dict[str, Any], message: str) -> None:
        with pytest.raises(OptionError, match=message):
            part(**keys)

    def test_frozen(self) -> None:
        with pytest.raises(ValidationError, match="frozen"):
            Channel().loss = 0.5  # type: ignore[misc]

    def test_a_name_stands_for_a_part_with_its_defaults(self) -> None:
        exchange = TypeAdapter(AnyExchange)
        assert exchange.validate_python("poll") == exchange.validate_python({"kind": "poll"})

    @pytest.mark.parametrize("kind", ["polling", "Poll", "", "pull"])
    def test_an_unknown_kind_is_no_default(self, kind: str) -> None:
        with pytest.raises(ValidationError, match="'request', 'poll', 'round', 'broadcast', 'gossip'"):
            TypeAdapter(AnyExchange).validate_python(kind)

    @pytest.mark.parametrize(
        "keys",
        [
            {"kind": "gossip", "mode": "shout"},
            {"kind": "request", "busy": "wait"},
            {"kind": "poll", "interval": 0.0},
            {"kind": "poll", "service": 1.0},
        ],
    )
    def test_an_unknown_choice_is_no_default(self, keys: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            TypeAdapter(AnyExchange).validate_python(keys)

    @pytest.mark.parametrize("response", [1.5, {"uniform": [1.5, 2.0]}])
    def test_a_response_longer_than_the_interval_never_answers(self, response: Any) -> None:
        with pytest.raises(ValidationError, match="would supersede every answer"):
            TypeAdapter(AnyExchange).validate_python({"kind": "poll", "interval": 1.0, "response": response})


@dataclass(frozen=True)
class _Rectangle:
    width: float
    height: float

    @cached_property
    def area(self) -> float:
        return self.width * self.height

    @cached_property
    def half(self) -> list[float]:
        return [self.width / 2]


@dataclass(frozen=True)
class _Box(_Rectangle):
    depth: float = 1.0

    @cached_property
    def volume(self) -> float:
        return self.area * self.depth


def test_what_is_derived_keeps_what_it_is_told_to_and_computes_the_rest():
    box = _Box(2.0, 3.0, 4.0)
    assert (box.area, box.volume, box.half) == (6.0, 24.0, [1.0])
    other = derived(box, ("half",), height=5.0)
    assert other == _Box(2.0, 5.0, 4.0)
    assert (other.area, other.volume) == (10.0, 40.0)
    assert other.half is box.half
    assert (box.area, box.volume) == (6.0, 24.0)
    assert derived(box).half == box.half
    assert derived(box).half is not box.half

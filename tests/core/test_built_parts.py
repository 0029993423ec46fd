"""A part that is built in Python with a wrong key or value says what a file would be told: key, expected and given."""

import copy
import pickle
import re
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

import p2psim
import p2psim.scenario.model  # declares all parts that ship
from p2psim.core import registry
from p2psim.core.errors import InputError, OptionError
from p2psim.core.options import Options


class Thing:
    """What no key takes."""


def is_options(part: Any) -> bool:
    return isinstance(part, type) and issubclass(part, Options)


CLASSES = [part for kind in registry.KINDS for part in registry.parts(kind).values() if is_options(part)]


def faults(part: type[Options], **keys: Any) -> dict[str, str]:
    """What is wrong with a part of these keys, by key."""
    with pytest.raises(InputError) as caught:
        part(**keys)
    assert isinstance(caught.value, ValueError)
    assert not isinstance(caught.value, ValidationError)
    return {fault.key: fault.message for fault in caught.value.faults}


def test_all_kinds_of_parts_with_keys_are_tried() -> None:
    assert {part.part_kind for part in CLASSES} == set(registry.KINDS) - {"accountant", "metric", "figure"}


@pytest.mark.parametrize("part", CLASSES, ids=lambda part: f"{part.part_kind}-{registry.name_of(part)}")
def test_every_part_names_the_key_what_is_expected_and_what_was_given(part: type[Options]) -> None:
    assert faults(part, nonsense=1)["nonsense"].startswith("unknown key; ")
    kind = faults(part, kind="nonsense")[""]
    assert kind.startswith(f"unknown kind 'nonsense'; known: {registry.name_of(part)}")
    for key in part.model_fields.keys() - {"kind"}:
        messages = {
            name: text for name, text in faults(part, **{key: Thing()}).items() if name.startswith(key)
        }
        # What has to be an object of Python says what to give instead.
        expected = r"must be .+, got a Thing|(arrays are given in|must be .+, from) Python; .+|needs a kind; known: .+"
        assert messages, key
        assert all(re.fullmatch(expected, text) for text in messages.values()), messages
    if required := {key for key, field in part.model_fields.items() if field.is_required()}:
        missing = faults(part)
        assert missing.keys() == required
        assert all(text.startswith("is required") for text in missing.values())


def test_all_that_is_wrong_is_reported_together() -> None:
    with pytest.raises(OptionError) as caught:
        p2psim.GilbertElliott(bad=-1, good="never", loss=2)  # type: ignore[call-arg, arg-type]
    assert [fault.key for fault in caught.value.faults] == ["good", "bad", "loss"]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: p2psim.Gossip(mode="x"), "mode: unknown mode 'x'; known: push, pull, push-pull, edge"),
        (lambda: p2psim.Gossip(mode="pul"), "mode: unknown mode 'pul'; .*; did you mean pull"),
        (lambda: p2psim.Ring(agents=-1), "agents: must be a whole number of at least 1, got -1"),
        (lambda: p2psim.Ring(agnets=3), "agnets: unknown key; did you mean agents"),
        (lambda: p2psim.Channel(latency={"uniform": [2, 1]}), "latency: uniform: the lower end 2.0 is above"),
        (lambda: p2psim.Scripted(), "^give exactly one of path and intervals$"),
        (lambda: p2psim.RecordSection(every={"time": 0}), "every.time: must be a positive number, got 0"),
    ],
)
def test_messages_are_those_of_files(build: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build()


def test_validation_and_parts_inside_of_parts_are_left_to_pydantic() -> None:
    class Around(BaseModel):
        ring: p2psim.Ring

    for tree in ({"agents": -1}, {"agents": "three"}):
        with pytest.raises(ValidationError):
            p2psim.Ring.model_validate(tree)
        with pytest.raises(ValidationError, match=r"ring\.agents"):
            Around(ring=tree)  # type: ignore[arg-type]


def test_parts_are_copied_and_pickled_as_they_are() -> None:
    ring = p2psim.Ring(agents=5)
    assert copy.deepcopy(ring) == pickle.loads(pickle.dumps(ring)) == ring.model_copy() == ring
    error = OptionError("agents: must be 3")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)

"""The ``tune`` section: a key whose value each cell chooses by a metric on validation problems, never on test records.

The validation study is an ordinary scenario, in which the key is swept last. A resolved scenario holds the values that
were chosen, one for each cell, so that reading it again chooses nothing.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from p2psim.core.errors import Fault, InputError, show
from p2psim.core.nodes import Node, find, placed, put
from p2psim.scenario.fields import ScenarioFields, explicit
from p2psim.scenario.record import Tune
from p2psim.scenario.sweep import WHOLE, Axis, SweptKey, split_key, with_value

#: What is drawn and kept, beside what belongs to the whole study, is no choice that a metric could judge.
_FIXED = (*WHOLE, "seed", "data.seed", "data.validation_fraction", "record", "independent", "network.engine")


def tuned_axis(node: Node) -> list[Axis]:
    """The tuned key of a scenario as it was written, with its values; nothing where none is well formed."""
    tune = node.child("tune")
    key, values = (tune.child(name) if tune is not None else None for name in ("key", "values"))
    if key is None or values is None or not isinstance(key.content, str) or not key.content:
        return []
    listed = values.content if isinstance(values.content, list) else []
    return [[SweptKey(key.content, listed, key.place)]] if listed else []


def faults_of_key(tune: Tune, swept: Sequence[str]) -> Iterator[Fault]:
    """What is wrong with the key, beside the swept keys, and with values that are said to be chosen."""
    plain = all(isinstance(value, int | float | str) for value in tune.values)
    for chosen in tune.chosen or ():
        if plain and chosen not in tune.values:
            yield Fault(f"{chosen} is none of the values: leave chosen out, and run chooses", "tune.chosen")
    for fixed in _FIXED:
        if f"{tune.key}.".startswith(f"{fixed}."):
            yield Fault(
                f"{tune.key} belongs to the whole study, or does not change the model: it cannot be tuned",
                "tune.key",
            )
    for key in swept:
        if f"{tune.key}.".startswith(f"{key}.") or f"{key}.".startswith(f"{tune.key}."):
            yield Fault(f"{key} is swept; tune another key, or do not sweep it", "tune.key")
        if key == "seed":
            message = "is swept, so that validation problems would be those of the study; sweep data.seed"
            yield Fault(message, "sweep.seed")


def tuning(scenario: ScenarioFields) -> Iterator[Fault]:
    """Rule: validation problems are others than those of the study, and test records stay out of sight."""
    tune, data = scenario.tune, scenario.data
    if tune is None:
        return
    if tune.validation == "problems":
        if not data.source.generated:
            message = (
                f"problems are for generated sources; {data.source.kind} has one set of records: take split"
            )
            yield Fault(message, "tune.validation")
        if data.seed is not None:
            message = "fixes the records, so that no other problems can be drawn: leave it out"
            yield Fault(message, "data.seed")
    else:
        if data.redrawn:
            message = "other replicas would validate with records that another tests with: tune by split needs never"
            yield Fault(f"{message}; sweep data.seed for several splits", "data.redraw")
        if "data" in scenario.independent:
            yield Fault("data: cells of the validation study would have other records", "independent")


def validation_node(scenario: ScenarioFields) -> Node:
    """The validation study: the key is swept last, on other problems or records, with noise and clocks of their own."""
    tune, node = scenario.tune, scenario.nodes()
    section, values = (find(node, steps) for steps in (("tune",), ("tune", "values")))
    assert tune is not None
    assert section is not None
    assert values is not None
    digest = hashlib.blake2b(f"p2psim validation of {scenario.seed}".encode(), digest_size=6).digest()
    data: dict[str, Any] = {}
    if tune.validation == "split":
        # The same records and tests, of which the tests are left out.
        data = {
            "data.seed": scenario.seed if scenario.data.seed is None else scenario.data.seed,
            "data.validation_fraction": tune.fraction,
        }
    kept = scenario.record
    record = {"metrics": [tune.metric], "every": explicit(kept.every), "events": kept.events}
    name, seed = f"{scenario.name[:89]} validation", int.from_bytes(digest)
    changes: dict[str, Any] = {"name": name, "seed": seed, "replicas": tune.replicas, "record": record}
    changes["learning.baselines"] = []
    node = node.without("tune", "figure", "fitted")
    for key, value in (changes | data).items():
        node = put(node, split_key(key), placed(value, section.place))
    return put(node, ("sweep", tune.key), values, section.keys.get("key"))


def with_choice(node: Node, tune: Tune, cell: int) -> Node:
    """A cell with the value that it chose; as it is where nothing was chosen yet."""
    if tune.chosen is None:
        return node
    node = with_value(node, tune.key, placed(tune.chosen[cell]))
    return put(node, ("tune", "chosen"), placed([tune.chosen[cell]]))


def refuse_untuned(scenario: ScenarioFields) -> None:
    """Raise an InputError if a value has not been chosen yet."""
    if scenario.tune is not None and scenario.tune.chosen is None:
        message = (
            "its value is chosen by p2psim run; take scenario.yaml of the run folder, or give tune: null"
        )
        raise InputError(scenario.locate(Fault(f"{scenario.tune.key}: {message}", "tune")))


def notes_on_tuning(scenario: Mapping[str, Any]) -> list[str]:
    """What was chosen, by what, and what that costs; from a scenario as a plain tree."""
    if not (tune := scenario.get("tune")):
        return []
    chosen, values, replicas = tune.get("chosen"), tune["values"], tune["replicas"]
    listed = ", ".join(map(_shown, chosen or ()))
    what = "is chosen by p2psim run" if chosen is None else f"= {listed} in the cells, in order,"
    if tune["validation"] == "problems":
        cost = "problems of another seed: none of the study's records takes part, so that the choice costs no privacy"
    else:
        cost = (
            f"{tune['fraction']:.0%} of the training records: {len(values) * replicas} further runs spend up to their "
            "budget each, and the choice sees the metric without noise, so that the ledger has ε = ∞ (epsilon_claimed "
            "is that of this run alone)"
        )
    return [
        f"tune: {tune['key']} {what} from {len(values)} values by the mean {tune['metric']} of {replicas} replicas on "
        f"{cost}; test records take no part in it"
    ]


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_shown(entry)}' for key, entry in value.items())}}}"
    return show(value).strip("'")

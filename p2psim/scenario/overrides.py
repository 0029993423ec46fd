"""``--set KEY=VALUE``: values given beside the file, as if they had been written in it."""

from collections.abc import Sequence

from p2psim.core.errors import Fault, InputError
from p2psim.scenario.nodes import Node, Place, Steps, find, put
from p2psim.scenario.sweep import METHODS, swept_keys
from p2psim.scenario.yaml import read

#: After these comes a swept key.
_BEFORE_SWEPT = (
    "sweep.zip.",
    *(f"sweep.{method}.{part}." for method in METHODS for part in ("keys", "values")),
)


def split(key: str) -> Steps:
    """Split a dotted key; a swept key is one step, since it is dotted itself, wherever it stands."""
    for prefix in _BEFORE_SWEPT:
        if key.startswith(prefix):
            return (*prefix.rstrip(".").split("."), key.removeprefix(prefix))
    if key.startswith("sweep.") and key.split(".")[1] not in METHODS:
        return "sweep", key.removeprefix("sweep.")
    return tuple(key.split("."))


def override(node: Node, overrides: Sequence[str]) -> tuple[Node, list[Fault]]:
    """Put overrides into a scenario as it was written.

    Parameters
    ----------
    node : Node
        The root.
    overrides : sequence of str
        ``KEY=VALUE``, in order: a dotted key and a YAML value. Keys are not checked here; when the scenario
        is, what is wrong with one has the place ``--set KEY``.

    Returns
    -------
    node : Node
    faults : list of Fault
        Overrides that are not of this form, or would have no effect since the sweep sets their keys in every cell;
        they are left out.
    """
    faults: list[Fault] = []
    for text in overrides:
        key, equals, value = text.partition("=")
        key = key.strip()
        name = f"--set {key}"
        if not equals or not all(split(key)):
            faults.append(Fault(f"must be KEY=VALUE with a dotted key, got {text!r}", path="--set"))
            continue
        try:
            entry = read(value, name)
        except InputError as error:
            faults += [Fault(fault.message, key, name) for fault in error.faults]
            continue
        swept = next((s for s in swept_keys(node) if f"{key}.".startswith(f"{s}.")), None)
        if swept is not None:
            cure = f"give --set 'sweep.{swept}=[...]' instead, or --set 'sweep={{}}' as well, before it"
            faults.append(Fault(f"is swept, so this value would be used in no cell; {cure}", key, name))
            continue
        steps = split(key)
        seal = (*steps[:-1], "sha256")
        old = find(node, seal) if steps[-1] == "path" else None
        try:
            node = put(node, steps, _at(entry, Place(name)))
            if old is not None and not old.place.path.startswith("--set "):  # it was that of another file
                node = put(node, seal, Node("", old.place))
        except InputError as error:
            faults += [Fault(fault.message, key, name) for fault in error.faults]
    return node, faults


def _at(node: Node, place: Place) -> Node:
    """Give a tree one place: a line number within a command's argument helps nobody."""
    if isinstance(node.content, dict):
        entries = {key: _at(entry, place) for key, entry in node.content.items()}
        return Node(entries, place, dict.fromkeys(entries, place))
    if isinstance(node.content, list):
        return Node([_at(entry, place) for entry in node.content], place)
    return Node(node.content, place)

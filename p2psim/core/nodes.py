"""A scenario as it was written: plain values, each with the place that it came from.

The tree is what YAML, ``--set`` and Python dictionaries are turned into before anything is checked, so that
whatever is found wrong later can be traced to a line. Nodes are never changed in place: aliases share them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from p2psim.core.errors import Fault, InputError

#: Steps from the root: keys of mappings and positions in lists, both written as text in a dotted key.
Steps = tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """Where something was written; the line and column count from one, and are zero when there is none."""

    path: str = ""
    line: int = 0
    column: int = 0


def at(place: Place, key: str, message: str, names_part: bool = False) -> Fault:
    """Return a fault at a place."""
    return Fault(message, key, place.path, place.line, place.column, names_part)


@dataclass(frozen=True)
class Node:
    """A scalar, a mapping or a list, and where it stands.

    Attributes
    ----------
    content : None, bool, int, float, str, or a dict or list of nodes
    place : Place
        Where the value begins.
    keys : dict
        Where each key of a mapping stands.
    """

    content: Any
    place: Place = Place()
    keys: dict[str, Place] = field(default_factory=dict)

    def child(self, step: str) -> "Node | None":
        """Return the entry under a key or at a position, None when there is none."""
        if isinstance(self.content, dict):
            return self.content.get(step)
        if isinstance(self.content, list) and step.isdecimal() and int(step) < len(self.content):
            return self.content[int(step)]
        return None

    def without(self, *keys: str) -> "Node":
        """Return the same mapping without some keys."""
        entries = {key: entry for key, entry in self.content.items() if key not in keys}
        return Node(entries, self.place, self.keys)


def plain(node: Node) -> Any:
    """Return the values alone, as fresh dictionaries and lists."""
    if isinstance(node.content, dict):
        return {key: plain(entry) for key, entry in node.content.items()}
    if isinstance(node.content, list):
        return [plain(entry) for entry in node.content]
    return node.content


def find(node: Node, steps: Sequence[str]) -> Node | None:
    """Return the node at the end of some steps, None when they lead nowhere."""
    for step in steps:
        entry = node.child(step)
        if entry is None:
            return None
        node = entry
    return node


def place_of(node: Node, steps: Sequence[str], *, key: bool = False) -> Place:
    """Return where a value stands, or its key; of what is not there, the nearest that encloses it.

    Parameters
    ----------
    node : Node
        The root.
    steps : sequence of str
    key : bool
        Whether the place of the last step's key is wanted, if it is in a mapping.
    """
    for i, step in enumerate(steps):
        entry = node.child(step)
        if entry is None:
            if step == "0" and not isinstance(node.content, list):
                continue  # one part where a list of parts is expected: it is the first
            break
        if key and i == len(steps) - 1 and step in node.keys:
            return node.keys[step]
        node = entry
    return node.place


def placed(value: Any, place: Place = Place(), origin: Node | None = None) -> Node:
    """Turn plain values into nodes that stand at one place, or at those of a tree with the same keys.

    Parameters
    ----------
    value : plain values
    place : Place
        Of what encloses it.
    origin : Node, optional
        What is not in it stands where the nearest that encloses it stands.
    """
    place = origin.place if origin is not None else place
    places = origin.keys if origin is not None else {}
    if isinstance(value, Mapping):
        named = {str(key): entry for key, entry in value.items()}
        entries = {key: placed(entry, place, origin and origin.child(key)) for key, entry in named.items()}
        return Node(entries, place, {key: places.get(key, place) for key in entries})
    if isinstance(value, list | tuple):
        listed = enumerate(value)
        return Node([placed(entry, place, origin and origin.child(str(i))) for i, entry in listed], place)
    return Node(value, place)


def put(node: Node, steps: Sequence[str], new: Node, key_place: Place | None = None) -> Node:
    """Return the tree with another node at the end of some steps.

    Mappings that are missing on the way are made, and a bare name on the way becomes ``{kind: name}``.

    Parameters
    ----------
    node : Node
        The root.
    steps : sequence of str
    new : Node
    key_place : Place, optional
        Where the keys that are made on the way stand; where the new node does, when left out.

    Raises
    ------
    InputError
        If the way leads through a number, or past the end of a list.
    """
    if not steps:
        return new
    place = key_place or new.place
    step, rest = steps[0], steps[1:]
    content, keys = node.content, node.keys
    if isinstance(content, list):
        if node.child(step) is None:
            raise InputError(
                at(place, "", f"{step!r} is no position in a list of {len(content)}, counted from 0")
            )
        entries = [
            put(entry, rest, new, place) if i == int(step) else entry for i, entry in enumerate(content)
        ]
        return Node(entries, node.place)
    if isinstance(content, str):
        content, keys = {"kind": node}, {"kind": node.place}
    elif content is None:
        content = {}
    elif not isinstance(content, dict):
        raise InputError(at(place, "", f"{step!r} cannot be set inside {content!r}, which is not a mapping"))
    entry = put(content.get(step, Node(None, place)), rest, new, place)
    return Node({**content, step: entry}, node.place, {**keys, step: keys.get(step, place)})

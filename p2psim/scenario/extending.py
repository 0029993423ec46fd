"""A scenario that says only how it differs from another file: ``extends: base.yaml``."""

from collections.abc import Sequence
from pathlib import Path

from p2psim.core.errors import Fault, InputError, show
from p2psim.core.nodes import Node, at, place_of, plain
from p2psim.scenario import yaml
from p2psim.scenario.figure import words_of_values

#: Files that may extend each other.
MOST_FILES = 10

#: Last parts of keys whose values are paths, and mappings whose keys are names of columns or values.
_PATHS = ("path", "test_path")
_OF_NAMES = ("categories", "dates", "labels")

#: Sections that take the place of the other file's as a whole: axes of two sweeps would multiply.
_AS_A_WHOLE = ("sweep",)


def extended(node: Node, files: Sequence[Path] = ()) -> tuple[Node, list[Fault]]:
    """Put a scenario over the one that its key ``extends`` names.

    Mappings are merged key by key; a mapping that names another ``kind``, numbers of agents in another form, a list, a
    bare value and ``sweep`` take the place of what the other file says. Every value keeps its place, so that errors
    name the right file. Relative values of keys named ``path`` or ``test_path`` start from the folder of their own
    file.

    Parameters
    ----------
    node : Node
        The root of a scenario as it was written.
    files : sequence of Path
        Those that led here.

    Returns
    -------
    node : Node
        Without ``extends``.
    faults : list of Fault
        Of the other files, as `p2psim.scenario.yaml.read_leniently` returns them.

    Raises
    ------
    InputError
        If it has no name of its own, or the other file cannot be read, is no scenario, or leads back to this one.
    """
    entry = node.child("extends") if isinstance(node.content, dict) else None
    if entry is None:
        return node, []
    if not isinstance(entry.content, str) or not entry.content:
        raise InputError(
            at(entry.place, "extends", f"must be the path of a scenario file, got {show(plain(entry))}")
        )
    if node.child("name") is None and not files:  # one that is extended needs none
        raise InputError(
            at(place_of(node, ("extends",), key=True), "name", "is missing: it is not taken from extends")
        )
    own = Path(node.place.path or ".").absolute()
    path = own.parent / entry.content if node.place.path else own / entry.content
    chain = [*files, own.resolve()]
    try:
        leads_back, is_file = path.resolve() in chain, path.is_file()
    except (OSError, ValueError):
        raise InputError(at(entry.place, "extends", f"{show(entry.content)} is no file's name")) from None
    if leads_back:
        raise InputError(
            at(entry.place, "extends", f"{entry.content} is this file, or extends it; name another")
        )
    if len(chain) >= MOST_FILES:
        raise InputError(at(entry.place, "extends", f"more than {MOST_FILES} files extend each other"))
    shown = Path(node.place.path).parent / entry.content
    try:
        base, faults = yaml.read_leniently(yaml.contents(path), str(shown))
    except InputError as error:
        if not is_file:
            message = f"{entry.content} cannot be read: {error.faults[0].message.partition(': ')[2]}"
            raise InputError(at(entry.place, "extends", message)) from None
        raise
    if not isinstance(base.content, dict):
        raise InputError(
            at(entry.place, "extends", f"{entry.content} must hold keys of a scenario, as name: or data:")
        )
    base, more = extended(base, chain)
    if path.parent.resolve() != own.parent.resolve():
        base = _from_folder(base, Path(entry.content).parent)
    whole = over(_without_choice(base, node), node.without("extends"))
    return words_of_values(base, whole), faults + more


def over(base: Node, node: Node, key: str = "") -> Node:
    """The node with what only the base says; a bare name there is a part without keys."""
    if isinstance(base.content, str) and isinstance(node.content, dict):
        base = Node({"kind": base}, base.place, {"kind": base.place})
    mappings = isinstance(base.content, dict) and isinstance(node.content, dict)
    if not mappings or key in _AS_A_WHOLE or _is_other_kind(base, node) or _is_other_form(base, node):
        return node
    entries = dict(base.content)
    for name, entry in node.content.items():
        under = f"{key}.{name}".removeprefix(".")
        entries[name] = over(base.content[name], entry, under) if name in base.content else entry
    return Node(entries, node.place, {**base.keys, **node.keys})


def _is_other_kind(base: Node, node: Node) -> bool:
    kind, other = base.child("kind"), node.child("kind")
    return other is not None and (kind is None or kind.content != other.content)


def _is_other_form(base: Node, node: Node) -> bool:
    """Whether both give numbers of agents, in different forms."""
    forms = {_form(base), _form(node)}
    return len(forms) == 2 and None not in forms


def _form(node: Node) -> str | None:
    """Form of a mapping that may be numbers of agents: by name, by a column of the records, or by a table."""
    content = plain(node)
    for key, keys in (("column", {"column"}), ("path", {"path", "sha256"})):
        if isinstance(content.get(key), str) and content.keys() <= keys:
            return key
    are_numbers = all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in content.values()
    )
    return "names" if content and are_numbers else None


def _from_folder(node: Node, folder: Path) -> Node:
    """The same with relative paths of files from another folder."""
    if isinstance(node.content, list):
        return Node([_from_folder(entry, folder) for entry in node.content], node.place)
    if not isinstance(node.content, dict):
        return node
    entries = {
        name: entry
        if name in _OF_NAMES
        else _moved(entry, folder)
        if name.rpartition(".")[2] in _PATHS
        else _from_folder(entry, folder)
        for name, entry in node.content.items()
    }
    return Node(entries, node.place, node.keys)


def _moved(node: Node, folder: Path) -> Node:
    """A path, or a list of them, from another folder; ``~`` is that of nobody's file."""
    if isinstance(node.content, list):
        return Node([_moved(entry, folder) for entry in node.content], node.place)
    if not isinstance(node.content, str) or not node.content or node.content.startswith("~"):
        return _from_folder(node, folder)
    return Node(str(folder / node.content), node.place)


def _without_choice(base: Node, node: Node) -> Node:
    """What is extended, without the values that its validation study chose: they are of another study."""
    tune, own = base.child("tune"), node.child("tune")
    if tune is None or tune.child("chosen") is None or (own is not None and own.child("chosen") is not None):
        return base
    return Node({**base.content, "tune": tune.without("chosen")}, base.place, base.keys)

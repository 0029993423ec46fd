"""The names that a scenario can use: kinds of parts, choices of keys and metrics, each with its meaning."""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from p2psim.core.distributions import Distribution
from p2psim.core.faults import Schema, Schemas, kind_of, synonyms_of
from p2psim.core.figures import FIGURES
from p2psim.core.registry import parts as registered
from p2psim.scenario.model import Scenario
from p2psim.scenario.rules import all_meanings


@dataclass(frozen=True)
class CatalogueEntry:
    """A name that a key takes.

    Attributes
    ----------
    key : str
        Dotted, positions in lists left out: ``data.features``.
    name : str
    meaning : str
    """

    key: str
    name: str
    meaning: str


@dataclass(frozen=True)
class SectionInfo:
    """A mapping of a scenario: a section, or one kind of a part.

    Attributes
    ----------
    key : str
        Where it stands.
    kind : str
        Empty for what has no kind.
    meaning : str
        The first paragraph of its docstring.
    schema : mapping
        Core schema of its model.
    synonyms : tuple of str
        Other names of the kind.
    """

    key: str
    kind: str
    meaning: str
    schema: Schema
    synonyms: tuple[str, ...] = ()


def catalogue() -> list[CatalogueEntry]:
    """Return everything that can be named, in the order of the models, with meanings in plain text."""
    schemas, entries = Schemas(Scenario), list[CatalogueEntry]()
    sections = parts(schemas)
    of_others: dict[tuple[str, str], str] = {}
    for part in sections:
        of_others = meanings_of_choices(part) | of_others
    for part in sections:
        # Its own explanation first: a part of the user's may explain a choice of the same name otherwise.
        of_choices = of_others | meanings_of_choices(part)
        if part.kind:
            entries.append(CatalogueEntry(part.key, part.kind, part.meaning))
            entries += [
                CatalogueEntry(part.key, name, f"the same as {part.kind}: {part.meaning}")
                for name in part.synonyms
            ]
        for key, schema in schemas.fields(part.schema).items():
            if key != "kind":
                dotted = f"{part.key}.{key}".lstrip(".")
                description = part.schema["cls"].model_fields[key].description or ""
                for name, meaning in _choices(schemas, schema):
                    entries.append(
                        CatalogueEntry(dotted, name, of_choices.get((dotted, name), meaning or description))
                    )
    entries += [CatalogueEntry("record.metrics", name, meaning) for name, meaning in all_meanings().items()]
    entries += [
        CatalogueEntry("figure", name, f"{entry.meaning}; needs {entry.needs}")
        for name, entry in FIGURES.items()
    ]
    plain = [CatalogueEntry(entry.key, entry.name, entry.meaning.replace("`", "")) for entry in entries]
    return list(dict.fromkeys(plain))


def matching(entries: Sequence[CatalogueEntry], word: str) -> list[CatalogueEntry]:
    """Entries that a word asks for: first those so named, then those of such a key, then those that speak of it.

    Parameters
    ----------
    entries : sequence of CatalogueEntry
    word : str
        Any part of a name or of a key; of a meaning, one or more whole words. Upper and lower case are alike; an
        underscore is a hyphen. Empty for all.
    """
    if not word:
        return list(entries)
    wanted = _folded(word)
    whole = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)")
    tests: list[Callable[[CatalogueEntry], bool]] = [
        lambda entry: wanted in _folded(entry.name),
        lambda entry: wanted in _folded(entry.key),
        lambda entry: whole.search(_folded(entry.meaning)) is not None,
    ]
    return list(dict.fromkeys(entry for test in tests for entry in entries if test(entry)))


def _folded(text: str) -> str:
    return text.lower().replace("_", "-")


def parts(schemas: Schemas, key: str = "", schema: Schema | None = None) -> list[SectionInfo]:
    """Return every mapping of the language: the scenario itself, its sections, and the parts inside them.

    With a key and its schema, those inside of that.
    """
    collected: list[SectionInfo] = []
    for leaf in schemas.leaves(schemas.root if schema is None else schema):
        if leaf["type"] != "model" or leaf["cls"] is Distribution:
            continue  # a distribution stands in many places, and is explained once
        text = leaf["cls"].__doc__ or ""
        meaning = " ".join(text.strip().split("\n\n")[0].split())
        collected.append(SectionInfo(key, kind_of(schemas, leaf), meaning, leaf, synonyms_of(schemas, leaf)))
        for name, field in schemas.fields(leaf).items():
            collected += parts(schemas, f"{key}.{name}".lstrip("."), field)
    # A part inside of one of its own kind, as of a graph that begins as another, is explained beside that.
    explained = {(part.key, part.schema["cls"]) for part in collected}
    return [
        part
        for part in collected
        if "." not in part.key or (part.key.rpartition(".")[0], part.schema["cls"]) not in explained
    ]


def _choices(schemas: Schemas, schema: Schema) -> Iterator[tuple[str, str]]:
    """Names that a value can be, and what registered parts that are named say of themselves."""
    for leaf in schemas.leaves(schema):
        if leaf["type"] == "literal":
            kind = leaf.get("metadata", {}).get("part_kind")
            named: Any = registered(kind) if kind else {}
            yield from ((str(name), getattr(named.get(name), "meaning", "")) for name in leaf["expected"])


def meanings_of_choices(part: SectionInfo) -> dict[tuple[str, str], str]:
    """What choices of keys mean, by dotted key and name: sections "Choices" of docstrings, also of base classes."""
    pages = (inspect.cleandoc(base.__doc__ or "") for base in reversed(part.schema["cls"].__mro__))
    sections = "\n".join(page.partition("\nChoices\n-------\n")[2].partition("\n\n")[0] for page in pages)
    return {
        (f"{part.key}.{key}".lstrip("."), name): " ".join(text.split())
        for key, name, text in re.findall(r"^(\w+): (\S+)((?:\n    .+)+)", sections, re.MULTILINE)
    }

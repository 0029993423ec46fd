"""What can be named in a scenario: every kind of every part, every choice, every metric."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from p2psim.distributions import Distribution
from p2psim.figures import FIGURES
from p2psim.registry import parts as registered
from p2psim.study.choices import CHOICES
from p2psim.study.core_schema import Schema, Schemas, kind_of
from p2psim.study.meaning import all_meanings
from p2psim.study.scenario import Scenario


@dataclass(frozen=True)
class Entry:
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
class Part:
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
    """

    key: str
    kind: str
    meaning: str
    schema: Schema


def catalogue() -> list[Entry]:
    """Return everything that can be named, in the order of the models, with meanings in plain text."""
    schemas = Schemas(Scenario)
    entries: list[Entry] = []
    for part in parts(schemas):
        if part.kind:
            entries.append(Entry(part.key, part.kind, part.meaning))
        for key, schema in schemas.fields(part.schema).items():
            if key != "kind":
                dotted = f"{part.key}.{key}".lstrip(".")
                known = CHOICES.get(dotted, {})
                description = part.schema["cls"].model_fields[key].description or ""
                for name, meaning in _choices(schemas, schema):
                    entries.append(Entry(dotted, name, known.get(name, meaning or description)))
    entries += [Entry("record.metrics", name, meaning) for name, meaning in all_meanings().items()]
    entries += [Entry("figure", name, f"{one.meaning}; needs {one.needs}") for name, one in FIGURES.items()]
    plain = [Entry(one.key, one.name, one.meaning.replace("`", "")) for one in entries]
    return list(dict.fromkeys(plain))


def matching(entries: Sequence[Entry], word: str) -> list[Entry]:
    """Entries that a word asks for: first those so named, then those of such a key, then those that speak of it.

    Parameters
    ----------
    entries : sequence of Entry
    word : str
        Any part of a name or of a key; of a meaning, one or more whole words. Upper and lower case are alike; an
        underscore is a hyphen. Empty for all.
    """
    if not word:
        return list(entries)
    asked = _folded(word)
    whole = re.compile(rf"(?<!\w){re.escape(asked)}(?!\w)")
    tests: list[Callable[[Entry], bool]] = [
        lambda one: asked in _folded(one.name),
        lambda one: asked in _folded(one.key),
        lambda one: whole.search(_folded(one.meaning)) is not None,
    ]
    return list(dict.fromkeys(one for test in tests for one in entries if test(one)))


def _folded(text: str) -> str:
    return text.lower().replace("_", "-")


def parts(schemas: Schemas) -> list[Part]:
    """Return every mapping of the language: the scenario itself, its sections, and the parts inside them."""
    found: list[Part] = []
    _collect(schemas, "", schemas.root, found)
    return found


def models_of(schemas: Schemas, schema: Schema) -> Iterator[Schema]:
    """Yield the models that a value can be, or that the entries of a list or mapping can be."""
    bare = schemas.bare(schema)
    kind = bare["type"]
    if kind == "model":
        yield bare
    elif kind == "tagged-union":
        for choice in bare["choices"].values():
            yield from models_of(schemas, choice)
    elif kind == "union":
        for choice in bare["choices"]:
            yield from models_of(schemas, choice[0] if isinstance(choice, tuple) else choice)
    elif kind == "list" and "items_schema" in bare:
        yield from models_of(schemas, bare["items_schema"])
    elif kind == "dict" and "values_schema" in bare:
        yield from models_of(schemas, bare["values_schema"])


def meaning_of(schema: Schema) -> str:
    """Return the first paragraph of a model's docstring, on one line."""
    text: Any = schema["cls"].__doc__ or ""
    return " ".join(text.strip().split("\n\n")[0].split())


def _collect(schemas: Schemas, key: str, schema: Schema, found: list[Part]) -> None:
    for model in models_of(schemas, schema):
        part = Part(key, kind_of(schemas, model), meaning_of(model), model)
        if model["cls"] is Distribution:
            continue  # stands in many places, and is explained once
        found.append(part)
        for name, field in schemas.fields(model).items():
            _collect(schemas, f"{key}.{name}".lstrip("."), field, found)


def _choices(schemas: Schemas, schema: Schema) -> Iterator[tuple[str, str]]:
    """Names that a value can be, and what registered parts that are named say of themselves."""
    bare = schemas.bare(schema)
    if bare["type"] == "literal":
        kind = bare.get("metadata", {}).get("part_kind")
        named: Any = registered(kind) if kind else {}
        yield from ((str(name), getattr(named.get(name), "meaning", "")) for name in bare["expected"])
    elif bare["type"] == "list" and "items_schema" in bare:
        yield from _choices(schemas, bare["items_schema"])
    elif bare["type"] == "tagged-union" and not isinstance(bare["discriminator"], str):
        for choice in bare["choices"].values():
            yield from _choices(schemas, choice)

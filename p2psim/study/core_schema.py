"""Reading the models' schemas: what a key expects, in words, and what a pydantic location means.

Error messages, the reference page and the list of what can be named all speak from here, so they agree.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from p2psim.distributions import Distribution
from p2psim.options import INT32, INT64

Schema = Mapping[str, Any]

#: Schemas that only wrap another one. ``nullable`` is not among them: null is a value of its own.
_WRAPPERS = {"default", "function-before", "function-after", "function-wrap", "definitions"}

#: Bounds that a column sets, which only a message about a number beyond them says, and how.
OF_COLUMNS = {INT32: "2³¹ − 1", INT64: "2⁶³ − 1", -INT64: "−2⁶³ + 1"}


class Schemas:
    """The core schema of a model, with references resolved."""

    def __init__(self, model: type[BaseModel]):
        self.root: Schema = model.__pydantic_core_schema__
        self._named: dict[str, Schema] = {}
        if self.root["type"] == "definitions":
            self._named = {entry["ref"]: entry for entry in self.root["definitions"]}

    def bare(self, schema: Schema, *, null: bool = False) -> Schema:
        """Strip wrappers, and ``nullable`` too unless `null` asks to keep it."""
        while True:
            kind = schema["type"]
            if kind == "definition-ref":
                schema = self._named[schema["schema_ref"]]
            elif kind in _WRAPPERS or (kind == "nullable" and not null):
                schema = schema["schema"]
            else:
                return schema

    def fields(self, schema: Schema) -> dict[str, Schema]:
        """Fields of a model's schema, by key."""
        inside = self.bare(self.bare(schema)["schema"])
        return {key: field["schema"] for key, field in inside["fields"].items()}


@dataclass(frozen=True)
class Spot:
    """What a pydantic location means.

    Attributes
    ----------
    steps : tuple of str
        Keys and positions from the root, without the tags of unions.
    schema : Schema or None
        What is expected there, None when nothing is.
    inside : Schema or None
        What encloses it.
    union : Schema or None
        Where what is expected is one choice of a union that differs by more than its kind, all of it.
    """

    steps: tuple[str, ...]
    schema: Schema | None
    inside: Schema | None
    union: Schema | None = None


def follow(schemas: Schemas, location: Sequence[str | int]) -> Spot:
    """Follow a location of a pydantic error through the schema."""
    steps: list[str] = []
    inside: Schema | None = None
    schema: Schema | None = schemas.root
    union: Schema | None = None
    for i, element in enumerate(location):
        bare = schemas.bare(schema) if schema is not None else None
        kind = bare["type"] if bare is not None else None
        if bare is not None and kind == "tagged-union":
            schema, union = bare["choices"].get(element), bare
        elif bare is not None and kind == "union":
            # The element names a choice. What is wrong with the value itself is told of the whole union.
            deeper = [_choice(choice) for choice in bare["choices"]]
            deeper = [
                choice for choice in deeper if schemas.bare(choice)["type"] in ("model", "dict", "list")
            ]
            schema = bare if i == len(location) - 1 else deeper[0] if len(deeper) == 1 else None
        else:
            inside, schema = bare, _entry(schemas, bare, element)
            steps.append(str(element))
        if kind != "tagged-union":
            union = None
    return Spot(tuple(steps), schema, inside, union)


def _entry(schemas: Schemas, schema: Schema | None, element: str | int) -> Schema | None:
    kind = schema["type"] if schema is not None else None
    if schema is None:
        return None
    if kind == "model":
        return schemas.fields(schema).get(str(element))
    if kind == "dict":
        values: Schema | None = schema.get("values_schema")
        return values
    if kind == "list":
        items: Schema | None = schema.get("items_schema")
        return items
    if kind == "tuple" and isinstance(element, int):
        listed: list[Schema] = schema["items_schema"]
        return listed[element] if element < len(listed) else None
    return None


def phrase(schemas: Schemas, schema: Schema) -> str:
    """Say in words what a schema accepts: ``a positive number``, ``one of refuse, queue``."""
    bare = schemas.bare(schema, null=True)
    kind = bare["type"]
    if kind == "nullable":
        return f"{phrase(schemas, bare['schema'])}, or null"
    if kind in ("float", "int"):
        return _number("number" if kind == "float" else "whole number", bare)
    if kind == "literal":
        names = ", ".join(map(str, bare["expected"]))
        return f"one of {names}" if len(bare["expected"]) > 1 else names
    if kind == "list":
        return "a list" + (
            f", each {phrase(schemas, bare['items_schema'])}" if "items_schema" in bare else ""
        )
    if kind == "tuple":
        return f"a list of {len(bare['items_schema'])}, each {phrase(schemas, bare['items_schema'][0])}"
    if kind == "dict":
        if schemas.bare(bare.get("values_schema", {"type": "any"}))["type"] == "any":
            return "a mapping"
        return f"a mapping from names to {phrase(schemas, bare['values_schema'])}"
    if kind == "model":
        if bare["cls"] is Distribution:
            return "a distribution"
        kinds = kind_of(schemas, bare)
        return f"{kinds} or a mapping with kind: {kinds}" if kinds else _keys(schemas, bare)
    if kind == "tagged-union":
        if isinstance(bare["discriminator"], str):
            return f"a part of kind {', '.join(map(str, bare['choices']))}"
        return " or ".join(phrase(schemas, choice) for choice in bare["choices"].values())
    if kind == "union":
        return " or ".join(phrase(schemas, _choice(choice)) for choice in bare["choices"])
    return {"bool": "true or false", "str": "text", "any": "any value", "none": "null"}.get(
        kind, "another value"
    )


def kind_of(schemas: Schemas, schema: Schema) -> str:
    """Name of a part's kind, empty when the model has none."""
    kind = schemas.fields(schema).get("kind")
    return str(schemas.bare(kind)["expected"][0]) if kind is not None else ""


def _choice(choice: Any) -> Schema:
    chosen: Schema = choice[0] if isinstance(choice, tuple) else choice
    return chosen


def _keys(schemas: Schemas, schema: Schema) -> str:
    return f"a mapping of {', '.join(schemas.fields(schema))}"


def _number(noun: str, schema: Schema) -> str:
    above, below = schema.get("gt"), schema.get("lt")
    least, most = (None if bound in OF_COLUMNS else bound for bound in (schema.get("ge"), schema.get("le")))
    if least is not None and most is not None:
        return f"a {noun} from {_short(least)} to {_short(most)}"
    if above is not None and below is not None:
        return f"a {noun} between {_short(above)} and {_short(below)}, both excluded"
    if above == 0:
        words = f"a positive {noun}"
    else:
        bounds = [("above", above), ("of at least", least)]
        words = " ".join(
            [f"a {noun}", *(f"{word} {_short(bound)}" for word, bound in bounds if bound is not None)]
        )
    for word, bound in (("below", below), ("of at most", most)):
        words += f" {word} {_short(bound)}" if bound is not None else ""
    return words


def _short(number: float) -> str:
    return f"{number:g}"

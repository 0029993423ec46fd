"""Translation of pydantic's errors into faults with a place, a dotted key and the values that are allowed.

Error messages, the reference page and the catalogue read the models' schemas here, so that they agree.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from p2psim.core.errors import Fault, show
from p2psim.core.nodes import Node, at, place_of

Schema = Mapping[str, Any]

#: Schemas that only wrap another one. ``nullable`` is not among them: null is a value of its own.
_WRAPPERS = {"default", "function-before", "function-after", "function-wrap", "definitions"}

#: Bounds that a column sets, which only a message about a number beyond them says, and how.
OF_COLUMNS = {2**31 - 1: "2³¹ − 1", 2**63 - 1: "2⁶³ − 1", 1 - 2**63: "−2⁶³ + 1"}


#: The schema where nothing is expected.
_NOTHING: Schema = {"type": ""}


#: Schemas that others refer to, by references that say their class.
_NAMED: dict[str, Schema] = {}


def schema_of(model: type[BaseModel]) -> Any:
    """The core schema of a model, which is built when it is first wanted."""
    if not model.__pydantic_complete__:
        model.model_rebuild()
    schema: Any = model.__pydantic_core_schema__
    _NAMED.update({entry["ref"]: entry for entry in schema.get("definitions", ())})
    return schema


class Schemas:
    """The core schema of a model, with references resolved."""

    def __init__(self, model: type[BaseModel]):
        self.root: Schema = schema_of(model)

    def bare(self, schema: Schema, *, null: bool = False) -> Schema:
        """Strip wrappers, and ``nullable`` too unless `null` asks to keep it."""
        while True:
            kind = schema["type"]
            if kind == "definition-ref":
                schema = _NAMED[schema["schema_ref"]]
            elif looked_up := schema.get("metadata", {}).get("looked_up"):
                schema = looked_up()
            elif kind in _WRAPPERS or (kind == "nullable" and not null):
                schema = schema["schema"]
            else:
                return schema

    def fields(self, schema: Schema) -> dict[str, Schema]:
        """Fields of a model's schema, by key."""
        inside = self.bare(self.bare(schema).get("schema", _NOTHING))
        return {key: field["schema"] for key, field in inside.get("fields", {}).items()}

    def choices(self, schema: Schema) -> list[Schema]:
        """Choices of a union."""
        listed = schema.get("choices", ())
        if isinstance(listed, Mapping):  # a part with synonyms stands under each of its names
            return list({id(choice): choice for choice in listed.values()}.values())
        return [choice[0] if isinstance(choice, tuple) else choice for choice in listed]

    def leaves(self, schema: Schema) -> Iterator[Schema]:
        """What a value can be, or an entry of a list or mapping: the bare schemas inside unions and containers."""
        bare = self.bare(schema)
        inside = [bare[key] for key in ("items_schema", "values_schema") if key in bare]
        if bare["type"] in ("tagged-union", "union"):
            inside = self.choices(bare)
        elif bare["type"] not in ("list", "dict") or not inside:
            yield bare
            return
        for choice in inside:
            yield from self.leaves(choice)


@dataclass(frozen=True)
class SchemaLocation:
    """What a pydantic location means.

    Attributes
    ----------
    steps : tuple of str
        Keys and positions from the root, without the tags of unions.
    schema : Schema
        What is expected there; its type is empty where nothing is.
    inside : Schema
        What encloses it.
    union : Schema
        Where what is expected is one choice of a union that differs by more than its kind, all of it.
    """

    steps: tuple[str, ...]
    schema: Schema
    inside: Schema
    union: Schema


def follow(schemas: Schemas, location: Sequence[str | int]) -> SchemaLocation:
    """Follow a location of a pydantic error through the schema."""
    steps: list[str] = []
    inside, schema, union = _NOTHING, schemas.root, _NOTHING
    for i, element in enumerate(location):
        bare = schemas.bare(schema)
        if bare["type"] == "tagged-union":
            schema, union = bare["choices"].get(element, _NOTHING), bare
            continue
        union = _NOTHING
        if bare["type"] == "union":
            # The element names a choice. What is wrong with the value itself is told of the whole union.
            deeper = [
                choice
                for choice in schemas.choices(bare)
                if schemas.bare(choice)["type"] in ("model", "dict", "list")
            ]
            schema = bare if i == len(location) - 1 else deeper[0] if len(deeper) == 1 else _NOTHING
        else:
            inside, schema = bare, _entry(schemas, bare, element)
            steps.append(str(element))
    return SchemaLocation(tuple(steps), schema, inside, union)


def _entry(schemas: Schemas, schema: Schema, element: str | int) -> Schema:
    if schema["type"] == "model":
        return schemas.fields(schema).get(str(element), _NOTHING)
    entries: Any = schema.get("values_schema" if schema["type"] == "dict" else "items_schema", _NOTHING)
    if schema["type"] != "tuple":
        return entries
    place = schema.get("variadic_item_index", element)  # of a tuple of any length, whose entries are alike
    return dict[Any, Schema](enumerate(entries)).get(place, _NOTHING)


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
        length = "" if "variadic_item_index" in bare else f" of {len(bare['items_schema'])}"
        return f"a list{length}, each {phrase(schemas, bare['items_schema'][0])}"
    if kind == "dict":
        if schemas.bare(bare.get("values_schema", {"type": "any"}))["type"] == "any":
            return "a mapping"
        return f"a mapping from names to {phrase(schemas, bare['values_schema'])}"
    if kind == "model":
        if words := getattr(bare["cls"], "in_words", ""):
            return str(words)
        if name := kind_of(schemas, bare):
            return f"{name} or a mapping with kind: {name}"
        return f"a mapping of {', '.join(schemas.fields(bare))}"
    if kind == "tagged-union" and isinstance(bare["discriminator"], str):
        return f"a part of kind {', '.join(map(str, bare['choices']))}"
    if kind in ("tagged-union", "union"):
        return " or ".join(phrase(schemas, choice) for choice in schemas.choices(bare))
    return {"bool": "true or false", "str": "text", "any": "any value", "none": "null"}.get(
        kind, "another value"
    )


def kind_of(schemas: Schemas, schema: Schema) -> str:
    """Name of a part's kind, empty when the model has none."""
    kind = schemas.fields(schema).get("kind")
    return str(schemas.bare(kind)["expected"][0]) if kind is not None else ""


def synonyms_of(schemas: Schemas, schema: Schema) -> tuple[str, ...]:
    """Other names of a part's kind; none where a model takes several kinds, so that none of them is its default."""
    kind = schemas.fields(schema).get("kind")
    names = schemas.bare(kind)["expected"] if kind is not None else []
    return tuple(names[1:]) if names and schema["cls"].model_fields["kind"].default == names[0] else ()


def _number(noun: str, schema: Schema) -> str:
    above, below = schema.get("gt"), schema.get("lt")
    least, most = (None if bound in OF_COLUMNS else bound for bound in (schema.get("ge"), schema.get("le")))
    if least is not None and most is not None:
        return f"a {noun} from {least:g} to {most:g}"
    if above is not None and below is not None:
        return f"a {noun} between {above:g} and {below:g}, both excluded"
    words = f"a positive {noun}" if above == 0 else f"a {noun}"
    bounds = {"above": above or None, "of at least": least, "below": below, "of at most": most}
    return words + "".join(f" {word} {bound:g}" for word, bound in bounds.items() if bound is not None)


#: Problems, beside wrong types, that are told best by saying what the value must be.
_OF_THE_VALUE = {
    "greater_than", "greater_than_equal", "less_than", "less_than_equal", "finite_number", "int_from_float",
    "literal_error",
}  # fmt: skip


#: What people write for ``path``, and keys whose numbers of agents may stand in a file.
_FILES = ("file", "filename", "csv", "table")
_IN_FILES = ("epsilon", "rate", "slowdown")


def _form_meant(where: SchemaLocation, value: object) -> str:
    """How numbers of agents are taken from a file or a column, where that was probably meant; empty otherwise."""
    *before, key = ("", *where.steps)
    if not isinstance(value, str):
        return ""
    if key in _IN_FILES and value.lower().endswith(".csv"):
        return f"; a file is {{path: {value}}}"
    if where.inside["type"] != "dict":
        return ""
    form = "path" if key in _FILES else nearest(key, ["path", "column"])
    takes = form == "column" or (form == "path" and before[-1] in _IN_FILES)
    return f"; did you mean {form}?" if takes else ""


#: Kinds that there were, and what to give instead.
_FORMER = {
    "registered": "there is no kind 'registered' any more: your own mechanism is a class with a new kind, "
    "registered by p2psim.register; give {kind: ITS_NAME}, and --parts MODULE (docs/privacy.md shows one)"
}


def faults_of(error: ValidationError, model: type[BaseModel], node: Node) -> list[Fault]:
    """Translate all errors of a failed validation.

    Parameters
    ----------
    error : ValidationError
    model : type of BaseModel
        What was validated against.
    node : Node
        What was validated, with places.

    Returns
    -------
    list of Fault
        Without repetitions. Where a part's kind is unknown, its other keys are not judged.
    """
    schemas = Schemas(model)
    details = [(detail, follow(schemas, detail["loc"])) for detail in error.errors(include_url=False)]
    unknown = [where.steps[:-1] for detail, where in details if _is_wrong_kind(detail, where)]
    # A key that is written otherwise is not missing as well.
    meant = [
        (*where.steps[:-1], _meant_key(schemas, where))
        for detail, where in details
        if detail["type"] == "extra_forbidden"
    ]
    # Of text or a list, text that is refused is not judged as a list too.
    judged = [where.steps for detail, where in details if detail["type"] == "value_error"]
    faults = (
        _fault(detail, where, schemas, node)
        for detail, where in details
        if _is_wrong_kind(detail, where)
        or not (
            any(where.steps[: len(steps)] == steps for steps in unknown)
            or (detail["type"] == "missing" and where.steps in meant)
            or (detail["type"].endswith("_type") and where.steps in judged)
        )
    )
    return list(dict.fromkeys(faults))


def make_whole(tree: Any, error: ValidationError, model: type[BaseModel]) -> bool:
    """Put whole numbers in place of floats of the same value where they are expected; whether there were any."""
    changed = False
    for detail in error.errors(include_url=False):
        value = detail["input"]
        if detail["type"] == "int_type" and isinstance(value, float) and value.is_integer():
            *steps, last = follow(Schemas(model), detail["loc"]).steps
            inside = tree
            for step in steps:
                # One part where a list of parts is expected is the first.
                if isinstance(inside, list):
                    inside = inside[int(step)]
                elif step != "0" or step in inside:
                    inside = inside[step]
            inside[int(last) if isinstance(inside, list) else last] = int(value)
            changed = True
    return changed


def ordered(faults: Iterable[Fault]) -> list[Fault]:
    """Sort faults as they stand in the file, without repetitions."""
    return sorted(dict.fromkeys(faults), key=lambda fault: (fault.path, fault.line, fault.column))


def unknown(noun: str, name: object, known: Sequence[str]) -> str:
    """Say that a name is not known, which are, and which one was probably meant."""
    cure = f"; did you mean {near}?" if (near := nearest(str(name), known)) else ""
    names = (one if any(map(str.isalnum, one)) else repr(one) for one in known)
    return f"unknown {noun} {show(name)}; known: {', '.join(names)}{cure}"


def nearest(name: str, known: Sequence[str]) -> str:
    """Return the known name that is most like another one, or the shortest that ends with it; empty when none is."""
    folded = {one.lower().replace("_", "-"): one for one in known}
    wanted = name.lower().replace("_", "-")
    like = difflib.get_close_matches(wanted, folded, n=1)
    like += sorted((one for one in folded if wanted and one.endswith(f"-{wanted}")), key=len)
    return folded[like[0]] if like else ""


def _meant_key(schemas: Schemas, where: SchemaLocation) -> str:
    """The key that an unknown one probably stands for, perhaps of a section inside; empty when none is like it."""
    wrong, known = where.steps[-1], schemas.fields(where.inside)
    if wrong in _FILES and "path" in known:
        return "path"
    inside = [f"{key}.{wrong}" for key, schema in known.items() if wrong in schemas.fields(schema)]
    return nearest(wrong, list(known)) or (inside[0] if len(inside) == 1 else "")


def _is_wrong_kind(detail: Any, where: SchemaLocation) -> bool:
    return detail["type"] == "literal_error" and where.steps[-1:] == ("kind",)


def _fault(detail: Any, where: SchemaLocation, schemas: Schemas, node: Node) -> Fault:
    steps, schema = where.steps, where.schema
    place, key, message = steps, steps, ""
    problem = detail["type"]
    unnamed = problem in ("union_tag_invalid", "literal_error")
    names_part = unnamed and "part_kind" in schemas.bare(schema).get("metadata", {})
    if problem == "extra_forbidden":
        known = list(schemas.fields(where.inside))
        near = _meant_key(schemas, where)
        message = f"unknown key; {f'did you mean {near}?' if near else 'known: ' + ', '.join(known)}"
    elif problem == "missing":
        place = steps[:-1]
        if where.inside["type"] == "tuple":
            key = place
            message = f"must be {phrase(schemas, where.inside)}, got {show(detail['input'])}"
        else:
            expected = f": {phrase(schemas, schemas.bare(schema))}" if schema["type"] else ""
            message = f"is required{expected}"
    elif problem == "union_tag_invalid":
        place, kind = (*steps, "kind"), detail["ctx"]["tag"]
        known = list(schemas.bare(schema).get("choices", ()))
        message = _FORMER.get(kind) or unknown("kind", kind, known)
        names_part = names_part and kind not in _FORMER
    elif problem == "union_tag_not_found" and schema["type"]:
        message = f"needs a kind; known: {', '.join(schemas.bare(schema)['choices'])}"
    elif _is_wrong_kind(detail, where):
        key = steps[:-1]
        known = list(map(str, schemas.bare(schema).get("expected", ())))
        message = unknown("kind", detail["input"], known)
    message = message or _judgement(detail, where, schemas)
    return at(place_of(node, place, key=problem == "extra_forbidden"), ".".join(key), message, names_part)


def _judgement(detail: Any, where: SchemaLocation, schemas: Schemas) -> str:
    """Say what is wrong with a value that stands in the right place."""
    value = detail["input"]
    if detail["type"] in ("value_error", "assertion_error"):
        return str(detail["ctx"]["error"])
    bare = schemas.bare(where.schema)
    if bare["type"] == "literal" and detail["type"] == "literal_error" and isinstance(value, str):
        noun = next((step for step in reversed(where.steps) if not step.isdecimal()), "value")
        return unknown(noun, value, [str(name) for name in bare["expected"]])
    if detail["type"] in ("less_than_equal", "greater_than_equal"):
        ((side, limit),) = detail["ctx"].items()
        if limit in OF_COLUMNS:
            extreme = f"at {'most' if side == 'le' else 'least'} {OF_COLUMNS[limit]}"
            return f"must be {extreme}, which is all that a column holds, got {show(value)}"
    if detail["type"] == "string_pattern_mismatch":
        return f"must match {detail['ctx']['pattern']}, got {show(value)}"
    is_type = detail["type"].endswith("_type")
    if detail["type"] in ("string_too_short", "string_too_long") and bare.get("max_length") == 1:
        return f"must be one character, got {show(value)}"
    if bare["type"] and (is_type or detail["type"] in _OF_THE_VALUE):
        expected = where.union if is_type and where.union["type"] else bare
        return f"must be {phrase(schemas, expected)}, got {show(value)}{_form_meant(where, value)}"
    return f"{detail['msg'][0].lower()}{detail['msg'][1:]}, got {show(value)}"

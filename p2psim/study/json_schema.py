"""The language as a JSON Schema, for editors: completion, descriptions and red lines while typing.

It is pydantic's own schema, with what validators add: a bare name for a part whose defaults do, one entry
where a list is expected, and dotted keys in the sweep. What sections mean together it cannot say.
"""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from p2psim.options import AS_LIST, BY_NAME
from p2psim.study.core_schema import Schemas, kind_of
from p2psim.study.meaning import all_meanings
from p2psim.study.scenario import Scenario
from p2psim.study.search import METHODS, MOST_POINTS, RANGES


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a scenario."""
    schema = Scenario.model_json_schema(schema_generator=_Generator)
    values = {"type": "array", "minItems": 1}
    sections = [name for name in Scenario.model_fields if name not in ("name", "replicas", "sweep", "fitted")]
    keys = {rf"^({'|'.join(sections)})(\.[^.]+)*$": values}
    schema["properties"]["sweep"] = {
        "description": Scenario.model_fields["sweep"].description,
        "type": "object",
        "patternProperties": keys,
        "properties": {
            "zip": {
                "description": "keys that advance together; lists of equal length",
                "type": "object",
                "patternProperties": keys,
                "additionalProperties": False,
                "minProperties": 1,
            },
            **{method: _search(keys) for method in METHODS},
        },
        "additionalProperties": False,
    }
    metrics = {"enum": list(all_meanings())}
    for key in ("metrics", "per_agent"):
        schema["$defs"]["RecordSection"]["properties"][key]["items"] = metrics
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema, "title": "p2psim scenario"}


def _search(lists: dict[str, Any]) -> dict[str, Any]:
    """Schema of a search of the sweep."""
    ends = {
        name: {
            "type": "array",
            "items": {"type": "integer" if name.endswith("integers") else "number"},
            "minItems": 2,
            "maxItems": 2,
        }
        for name in RANGES
    }
    within = {
        "type": "object",
        "properties": ends | {"choice": {"type": "array", "minItems": 1}},
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
    return {
        "description": "points in ranges; a larger count keeps those of a smaller one",
        "type": "object",
        "properties": {
            "count": {"type": "integer", "minimum": 1, "maximum": MOST_POINTS},
            "seed": {"type": "integer", "minimum": 0},
            "keys": {
                "description": "a range for each key",
                "type": "object",
                "patternProperties": dict.fromkeys(lists, within),
                "additionalProperties": False,
                "minProperties": 1,
            },
            "values": {
                "description": "points drawn earlier",
                "type": "object",
                "patternProperties": lists,
                "additionalProperties": False,
            },
        },
        "required": ["count", "keys"],
        "additionalProperties": False,
    }


class _Generator(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        """Say no: a title that repeats the key helps nobody."""
        return False

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        """Add the short forms that validators expand."""
        inner = super().function_before_schema(schema)
        function = schema["function"]["function"]
        if function is BY_NAME.func:
            names = _names_that_do(schema["schema"])
            return {"anyOf": [{"enum": names}, inner]} if names else inner
        if function is AS_LIST.func and inner.get("type") == "array":
            return {"anyOf": [inner, inner["items"]]}
        return inner

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        """Require ``kind`` where it decides."""
        union = super().tagged_union_schema(schema)
        union.pop("discriminator", None)
        if schema["discriminator"] == "kind":
            union["oneOf"] = [{**choice, "required": ["kind"]} for choice in union["oneOf"]]
        return union


def _names_that_do(schema: Any) -> list[str]:
    """Return the kinds whose other keys all have defaults."""
    schemas = Schemas(Scenario)
    bare = schemas.bare(schema)
    choices = bare["choices"].values() if bare["type"] == "tagged-union" else [bare]
    models = [schemas.bare(choice) for choice in choices]
    return [
        kind_of(schemas, model)
        for model in models
        if not any(field.is_required() for field in model["cls"].model_fields.values())
    ]

"""The JSON Schema of scenarios for editors, and the reference page; both are generated from the models.

The schema is pydantic's own with what validators add: a bare name for a part whose defaults do, one entry where a list
is expected, and dotted keys in the sweep. It cannot express the rules between sections. ``python -m
p2psim.scenario.schema`` writes the tables of the page ``docs/reference/scenario-language.md``.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from p2psim.core.faults import Schemas, kind_of, phrase
from p2psim.core.figures import FIGURES
from p2psim.core.options import AS_LIST, BY_NAME
from p2psim.scenario.catalogue import SectionInfo, parts
from p2psim.scenario.cells import display
from p2psim.scenario.model import Scenario
from p2psim.scenario.rules import all_meanings
from p2psim.scenario.sweep import METHODS, MOST_POINTS, RANGES


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a scenario."""
    schema = Scenario.model_json_schema(schema_generator=_Generator)
    sections = [
        name for name in Scenario.model_fields if name not in ("name", "replicas", "sweep", "tune", "fitted")
    ]
    swept = rf"^({'|'.join(sections)})(\.[^.]+)*$"
    values = {"type": "array", "minItems": 1}
    schema["properties"]["sweep"] = _closed(
        Scenario.model_fields["sweep"].description,
        patternProperties={swept: values},
        properties={
            "zip": _closed(
                "keys that advance together; lists of equal length",
                patternProperties={swept: values},
                minProperties=1,
            ),
            **{method: _search(swept, values) for method in METHODS},
        },
    )
    schema["properties"]["extends"] = {
        "type": "string",
        "description": "a scenario file that this one changes",
    }
    metrics = {"enum": list(all_meanings())}
    for key in ("metrics", "per_agent"):
        schema["$defs"]["RecordSection"]["properties"][key]["items"] = metrics
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema, "title": "p2psim scenario"}


def _closed(description: str | None, **keywords: Any) -> dict[str, Any]:
    """Schema of a mapping without other keys."""
    described = {} if description is None else {"description": description}
    return {**described, "type": "object", **keywords, "additionalProperties": False}


def _search(swept: str, values: dict[str, Any]) -> dict[str, Any]:
    """Schema of a search of the sweep."""
    numbers = {name: {"type": "integer" if name.endswith("integers") else "number"} for name in RANGES}
    ends = {
        name: {"type": "array", "items": end, "minItems": 2, "maxItems": 2} for name, end in numbers.items()
    }
    within = _closed(None, properties=ends | {"choice": values}, minProperties=1, maxProperties=1)
    return _closed(
        "points in ranges; a larger count keeps those of a smaller one",
        properties={
            "count": {"type": "integer", "minimum": 1, "maximum": MOST_POINTS},
            "seed": {"type": "integer", "minimum": 0},
            "keys": _closed("a range for each key", patternProperties={swept: within}, minProperties=1),
            "values": _closed("points drawn earlier", patternProperties={swept: values}),
        },
        required=["count", "keys"],
    )


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
    return [
        kind_of(schemas, model)
        for model in schemas.leaves(schema)
        if not any(field.is_required() for field in model["cls"].model_fields.values())
    ]


def reference() -> str:
    """Return the page: what stands above the tables as it is, and the tables anew."""
    schemas = Schemas(Scenario)
    lines = [page().read_text(encoding="utf-8").partition("\n## The file")[0]]
    for part in parts(schemas):
        lines += _section(schemas, part)
    lines += ["## Metrics", "", "What `record.metrics` can name.", ""]
    lines += _table(
        ["metric", "meaning"], [[f"`{name}`", meaning] for name, meaning in all_meanings().items()]
    )
    lines += ["## Figures", "", "What `figure` and `p2psim plot --kind` can name.", ""]
    rows = [[f"`{name}`", figure.meaning, figure.needs] for name, figure in FIGURES.items()]
    lines += _table(["figure", "what it shows", "what it needs"], rows)
    return "\n".join(lines).rstrip() + "\n"


def page() -> Path:
    """Return where the page is in a checkout."""
    return Path(__file__).parents[2] / "docs" / "reference" / "scenario-language.md"


def _section(schemas: Schemas, part: SectionInfo) -> Iterator[str]:
    if not part.key:
        title = "## The file"
    else:
        mark = "##" if "." not in part.key else "###"
        title = f"{mark} `{part.key}`" + (f": `{part.kind}`" if part.kind else "")
    yield from (title, "", part.meaning, "")
    if part.synonyms:
        yield from (f"Other names: {', '.join(f'`{name}`' for name in part.synonyms)}.", "")
    described: dict[str, FieldInfo] = part.schema["cls"].model_fields
    rows = [
        [f"`{key}`", phrase(schemas, schema), _default(described[key]), described[key].description or ""]
        for key, schema in schemas.fields(part.schema).items()
        if key != "kind"
    ]
    if rows:
        yield from _table(["key", "value", "default", "meaning"], rows)
    else:
        yield from ("No keys.", "")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    return f"`{display(default)}`" if default is not None else ""


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def main() -> int:
    """Write the page."""
    page().write_text(reference(), encoding="utf-8")
    print(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())

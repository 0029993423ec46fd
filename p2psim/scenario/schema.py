"""Names that a scenario can use, the JSON Schema for editors, and the reference page: generated from the models.

The schema is pydantic's own with what validators add: a bare name for a part whose defaults do, one entry where a list
is expected, and dotted keys in the sweep. It cannot express the rules between sections. ``python -m
p2psim.scenario.schema`` writes the tables of the page ``docs/reference/scenario-language.md``.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from p2psim.core.distributions import Distribution
from p2psim.core.faults import Schema, Schemas, kind_of, phrase, synonyms_of
from p2psim.core.figures import FIGURES
from p2psim.core.options import AS_LIST, BY_NAME, BY_PLACE
from p2psim.core.registry import parts as registered
from p2psim.scenario.cells import display
from p2psim.scenario.model import Scenario
from p2psim.scenario.rules import all_meanings
from p2psim.scenario.sweep import METHODS, MOST_POINTS, RANGES


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


def keys_of(kind: str) -> Iterator[tuple[str, list[str]]]:
    """Parts of a kind, each with a line for every key: what it takes, its default and what it means."""
    schemas = Schemas(Scenario)
    seen = set[type]()
    for part in parts(schemas):
        model = part.schema["cls"]
        if model in seen or _folded(kind) not in map(_folded, (part.kind, *part.synonyms)):
            continue
        seen.add(model)
        described: dict[str, FieldInfo] = model.model_fields
        lines = []
        for key, schema in schemas.fields(part.schema).items():
            if key == "kind":
                continue
            default = _default(described[key]).strip("`")
            given = default if default in ("", "required") else f"default {default}"
            takes = "; ".join(filter(None, (phrase(schemas, schema), given)))
            lines.append(f"{key}: {(described[key].description or '').replace('`', '')} ({takes})")
        yield part.key, lines


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
        meaning = " ".join((leaf["cls"].__doc__ or "").strip().split("\n\n")[0].split())
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


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a scenario."""
    schema = Scenario.model_json_schema(schema_generator=_Generator)
    of_study = ("name", "replicas", "sweep", "tune", "fitted")
    sections = [name for name in Scenario.model_fields if name not in of_study]
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
    of_table = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    budgets = schema["$defs"]["PrivacySection"]["properties"]["epsilon"]
    budgets["anyOf"].append({**of_table, "description": "a CSV file with columns agent, epsilon"})
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
        if function is BY_PLACE.func:
            number = (inner.get("oneOf") or inner["anyOf"])[0]
            return {"anyOf": [inner, {"type": "array", "items": number, "minItems": 1}]}
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
    """Return the names, synonyms among them, of kinds whose other keys all have defaults."""
    schemas = Schemas(Scenario)
    return [
        name
        for model in schemas.leaves(schema)
        if not any(field.is_required() for key, field in model["cls"].model_fields.items() if key != "kind")
        for name, _ in _choices(schemas, schemas.fields(model)["kind"])
    ]


def reference() -> str:
    """Return the page: what stands above the tables as it is, and the tables anew."""
    schemas = Schemas(Scenario)
    lines = [page().read_text(encoding="utf-8").partition("\n## The file")[0]]
    first: dict[type, str] = {}
    titles = set[str]()
    for part in parts(schemas):
        model, title = part.schema["cls"], _title(part)
        if model not in first:
            lines += _section(schemas, part)
        elif title not in titles:
            # A part that several keys take is explained at the first.
            shown = first[model].lstrip("# ")
            anchor = re.sub(r"[^\w -]", "", shown).replace(" ", "-")
            lines += [title, "", f"The same as [{shown}](#{anchor}).", ""]
        first.setdefault(model, title)
        titles.add(title)
    lines += ["## Metrics", "", "What `record.metrics` can name.", ""]
    meanings = [[f"`{name}`", meaning] for name, meaning in all_meanings().items()]
    lines += _table(["metric", "meaning"], meanings)
    lines += ["## Figures", "", "What `figure` and `p2psim plot --kind` can name.", ""]
    rows = [[f"`{name}`", figure.meaning, figure.needs] for name, figure in FIGURES.items()]
    lines += _table(["figure", "what it shows", "what it needs"], rows)
    return "\n".join(lines).rstrip() + "\n"


def page() -> Path:
    """Return where the page is in a checkout."""
    return Path(__file__).parents[2] / "docs" / "reference" / "scenario-language.md"


def _title(part: SectionInfo) -> str:
    if not part.key:
        return "## The file"
    mark = "##" if "." not in part.key else "###"
    return f"{mark} `{part.key}`" + (f": `{part.kind}`" if part.kind else "")


def _section(schemas: Schemas, part: SectionInfo) -> Iterator[str]:
    yield from (_title(part), "", part.meaning, "")
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

"""Types of keys that take a part: it is looked up by its name among those that are registered when a value is checked.

So a schema is built without the parts that nobody names, and knows those that are registered later.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel, GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticKnownError, SchemaValidator, core_schema

from p2psim.core.faults import schema_of
from p2psim.core.process import interrupted_afterwards
from p2psim.core.registry import parts


class NameOf:
    """Metadata of a type: the name of a registered part of a kind whose parts have no keys."""

    def __init__(self, kind: str):
        self._kind = kind

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Look a value up among what is registered when it is checked."""
        known = {
            "looked_up": self.schema,
            "pydantic_js_functions": [lambda schema, handler: handler(self.schema())],
        }
        return core_schema.with_info_plain_validator_function(self._checked, metadata=known)

    def schema(self) -> Any:
        """Schema of what is registered now."""
        return core_schema.literal_schema(list(parts(self._kind)), metadata={"part_kind": self._kind})

    def _checked(self, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, str) or value not in parts(self._kind).entries:
            raise PydanticKnownError("literal_error", {"expected": ", ".join(parts(self._kind))})
        return value


class AnyOf(NameOf):
    """Metadata of a type: any registered part of a kind, by its key ``kind``, except those of some names."""

    def __init__(self, kind: str, but: tuple[str, ...] = ()):
        super().__init__(kind)
        self._but = but

    def schema(self) -> Any:
        """Schema of the union of what is registered now; a part is imported when its choice is read."""
        choices: Any = _Choices(self)
        return core_schema.tagged_union_schema(choices, "kind", metadata={"part_kind": self._kind})

    @property
    def names(self) -> tuple[str, ...]:
        """Names that a part may be called by."""
        return tuple(word for word, name in parts(self._kind).names.items() if name not in self._but)

    def named(self, kind: object) -> type[BaseModel] | None:
        """The part of a name or synonym, if there is one."""
        known = parts(self._kind)
        name = known.names.get(kind) if isinstance(kind, str) else None
        part: type[BaseModel] | None = None if name is None or name in self._but else known[name]
        return part

    def _checked(self, value: Any, info: ValidationInfo) -> Any:
        missing = object()
        if isinstance(value, dict):
            kind = value.get("kind", missing)
        elif isinstance(value, BaseModel):
            kind = getattr(value, "kind", missing)
        else:
            raise PydanticKnownError("model_attributes_type")
        if kind is missing:
            raise PydanticKnownError("union_tag_not_found", {"discriminator": "'kind'"})
        part = self.named(kind)
        if part is None:
            expected = ", ".join(map(repr, self.names))
            context = {"discriminator": "'kind'", "tag": str(kind), "expected_tags": expected}
            raise PydanticKnownError("union_tag_invalid", context)
        return _validator(part, kind).validate_python(value, context=info.context)


class _Choices(Mapping[str, Any]):
    """Schemas of the parts that may stand at a place, by name and synonym."""

    def __init__(self, union: AnyOf):
        self._union, self._names = union, union.names

    def __getitem__(self, name: str) -> Any:
        """Return the schema of a part."""
        part = self._union.named(name)
        if part is None:
            raise KeyError(name)
        return schema_of(part)

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._names)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._names)


@cache
def _validator(part: type[BaseModel], kind: str) -> SchemaValidator:
    """Checks a part as the one choice of a union, so that places of errors name its kind."""
    schema = schema_of(part)
    with interrupted_afterwards():
        return SchemaValidator(core_schema.tagged_union_schema({kind: schema}, "kind"))

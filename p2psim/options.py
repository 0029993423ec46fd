"""What every part of a scenario is made of: frozen, strict, and closed to unknown keys.

A *part* is one choice of a component together with its keys: ``{kind: poll, interval: 2.0}``. Each
component declares its own part beside its code; the section that owns it lists the parts in one union,
so that adding a component takes one new file and one line.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from p2psim.errors import MeaningError


class Options(BaseModel):
    """Base of all parts: immutable, no coercion between types, no unknown keys, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, validate_default=False)


Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Index = Annotated[int, Field(ge=0)]


def _expand_name(value: Any) -> Any:
    """``poll`` means ``{kind: poll}``."""
    return {"kind": value} if isinstance(value, str) else value


#: Put in the metadata of a union of parts, so that a bare name stands for the part with its defaults.
BY_NAME = BeforeValidator(_expand_name)


def _text_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): entry for key, entry in value.items()}
    return value


def _scalar_or_mapping(value: Any) -> str:
    return "mapping" if isinstance(value, Mapping) else "number"


def _positive_entries(value: float | dict[str, float]) -> float | dict[str, float]:
    for entry in value.values() if isinstance(value, dict) else [value]:
        if not entry > 0:
            raise ValueError(f"must be positive, got {entry}")
    return value


_Unbounded = Annotated[float, Field(allow_inf_nan=True)]

#: A positive number (possibly infinite) for all agents, or a mapping from agent (index or label) or group to one.
PerAgent = Annotated[
    Annotated[_Unbounded, Tag("number")] | Annotated[dict[str, _Unbounded], Tag("mapping")],
    Discriminator(_scalar_or_mapping),
    BeforeValidator(_text_keys),
    AfterValidator(_positive_entries),
]


def per_agent(
    value: float | Mapping[str, float], labels: Sequence[str], groups: Sequence[str] | None = None, *, key: str
) -> np.ndarray:
    """Resolve a per-agent quantity to one value an agent.

    An agent's own index or label is preferred over its group.

    Parameters
    ----------
    value : float or mapping
        A number for all, or a mapping from agent index, agent label or group to a number.
    labels : sequence of str
        The agents' labels, in order.
    groups : sequence of str, optional
        The agents' groups, in order.
    key : str
        The dotted scenario key, named in errors.

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    MeaningError
        If an agent has no value, or an entry names no agent and no group.
    """
    if not isinstance(value, Mapping):
        return np.full(len(labels), float(value))
    known = {str(i) for i in range(len(labels))} | set(labels) | set(groups or ())
    strangers = [name for name in value if name not in known]
    if strangers:
        raise MeaningError(key, f"no agent or group is called {strangers[0]!r}; there are {_some(sorted(known))}")
    values = np.empty(len(labels))
    for i, label in enumerate(labels):
        for name in (str(i), label, groups[i] if groups is not None else label):
            if name in value:
                values[i] = value[name]
                break
        else:
            raise MeaningError(key, f"agent {i} ({label}) has no value")
    return values


def _some(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return shown + (f", … ({len(names)} in all)" if len(names) > most else "")

"""`check_part` passes every source, feature and partition that is registered, and says what is wrong with bad ones."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from registered import registered

import p2psim
from p2psim.core import registry
from p2psim.data.features.maps import Fitted
from p2psim.data.labels import Column
from p2psim.testing import PartError, check_part

ALL = [part for kind in ("feature", "partition") for part in registered(kind)]
SOURCES = [part for part in registered("source") if part.kind != "arrays"]  # which only Python can make


@pytest.mark.parametrize("part", [*ALL, *SOURCES], ids=lambda part: part.kind)
def test_all_pass(part: Any) -> None:
    check_part(part)


class _Sees(p2psim.Feature):
    """Subtracts the mean of whatever rows it maps."""

    kind: Literal["sees"] = "sees"

    def fit(
        self, public: np.ndarray, names: tuple[str, ...], key: str, random: np.random.Generator
    ) -> Fitted:
        return Fitted(lambda rows: rows - rows[0], names)


class _Overwrites(_Sees):
    """Changes its argument."""

    kind: Literal["overwrites"] = "overwrites"

    def fit(
        self, public: np.ndarray, names: tuple[str, ...], key: str, random: np.random.Generator
    ) -> Fitted:
        return Fitted(lambda rows: np.multiply(rows, 2, out=rows), names)


class _Unseeded(_Sees):
    """Random numbers of its own."""

    kind: Literal["own-numbers"] = "own-numbers"
    needs_public: ClassVar[bool] = False

    def fit(
        self, public: np.ndarray, names: tuple[str, ...], key: str, random: np.random.Generator
    ) -> Fitted:
        factor = np.random.default_rng().uniform(1, 2)
        return Fitted(lambda rows: factor * rows, names)


class _Twice(p2psim.Partition):
    """Gives all rows to everyone."""

    kind: Literal["twice"] = "twice"

    def split(
        self, labels: np.ndarray, agents: int | None, column: Column | None, random: np.random.Generator
    ) -> tuple[list[np.ndarray], tuple[str, ...]]:
        return [np.arange(labels.size)] * 3, ("a", "b", "c")


class _OwnDraws(_Twice):
    """Random numbers of its own."""

    kind: Literal["own-draws"] = "own-draws"

    def split(
        self, labels: np.ndarray, agents: int | None, column: Column | None, random: np.random.Generator
    ) -> tuple[list[np.ndarray], tuple[str, ...]]:
        return np.array_split(np.random.default_rng().permutation(labels.size), 3), ("a", "b", "c")


@pytest.fixture
def forgets() -> Iterator[None]:
    """A bad part must not stay registered for other tests."""
    yield
    for part in (_Sees, _Overwrites, _Unseeded, _Twice, _OwnDraws):
        if registry.name_of(part) in registry.parts(part.part_kind):
            registry.forget(part.part_kind, registry.name_of(part))


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (_Sees, "depend on other records"),
        (_Overwrites, "changes the rows"),
        (_Unseeded, "the argument `random` alone"),
        (_Twice, "to one owner at most"),
        (_OwnDraws, "the argument `random` alone"),
    ],
)
def test_bad_parts(part: Any, said: str, forgets: None) -> None:
    registry.register(part)
    with pytest.raises(PartError) as caught:
        check_part(part())
    assert said in str(caught.value)

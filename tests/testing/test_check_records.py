"""`check_part` passes every source, feature and partition that is registered, and says what is wrong with bad ones."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from pydantic import Field
from registered import registered

import p2psim
from p2psim.core import registry
from p2psim.core.randomness import generator
from p2psim.data.classes import Column
from p2psim.data.features.maps import Fitted
from p2psim.data.records import DataRequest, Held, Table
from p2psim.testing import PartError, check_part

ALL = [part for kind in ("feature", "partition") for part in registered(kind)]
SOURCES = [part for part in registered("source") if part.kind != "arrays"]  # which only Python can make


@pytest.mark.parametrize("part", ALL, ids=lambda part: part.kind)
def test_all_pass(part: Any) -> None:
    check_part(part)


@pytest.mark.parametrize("part", SOURCES, ids=lambda part: part.kind)
def test_all_sources_pass_where_they_are_here(
    part: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    if part.kind not in ("movielens-100k", "creditcard", "csv", "parquet", "libsvm"):
        check_part(part)
        return
    with pytest.raises(PartError, match="its records were not tried") as failure:
        check_part(part)
    assert str(failure.value).count("\n- ") == 1


class _Records(p2psim.DataSource):
    """Twelve records, drawn anew with each key."""

    kind: Literal["twelve"] = "twelve"
    about: ClassVar[str] = "twelve records; y is 0 or 1"
    citation: ClassVar[str] = "nobody"
    licence: ClassVar[str] = "none is needed"
    generated: ClassVar[bool] = True
    fault: str = Field("", description="what is wrong with it")

    def load(self, request: DataRequest) -> Any:
        random = generator(request.key) if self.fault != "unseeded" else np.random.default_rng()
        X, y = random.standard_normal((12, 2)), np.arange(12.0) % 2
        if self.fault == "list":
            return X.tolist(), y.tolist()
        if self.fault == "held":
            return Held(X, y, np.array([0, 5, 9]), ("a", "b"), ("0", "1"), X[:3], y[:3])
        table = Table(X, y, ("a", "b"), columns={"of": np.arange(12)}, classes=("no", "yes"))
        changes: dict[str, dict[str, Any]] = {
            "float32": {"X": X.astype(np.float32)},
            "no names": {"names": ("a",)},
            "NaN": {"X": np.where(X > 0, X, np.nan)},
            "twins": {"names": ("a", "a")},
            "labels": {"y": y[:7]},
            "classes": {"y": y + 1},
            "columns": {"columns": {"of": np.arange(3)}},
            "held_by": {"held_by": "whose"},
            "tests": {"tests": 12},
            "constant": {"X": np.ones((12, 2))},
        }
        return replace(table, **changes.get(self.fault, {}))


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("list", "load gives a tuple, not a Table or Held"),
        ("held", "offsets do not divide 12 rows among 2 owners"),
        ("float32", "X is of float32"),
        ("no names", r"must be float64 \(12, 1\)"),
        ("NaN", "`fill` does not say what replaces it"),
        ("twins", "two features have one name: a, a"),
        ("labels", "y is not 12 finite numbers"),
        ("classes", "a label is no place of a class among 2"),
        ("columns", "the column of has 3 values, and there are 12 records"),
        ("held_by", "held_by names the column whose"),
        ("tests", "12 of 12 records are test records"),
        ("unseeded", "the same key gives other records"),
        ("constant", "they differ with the key where it is set alone"),
    ],
)
def test_bad_sources(fault: str, said: str, forgets: None) -> None:
    registry.register(_Records)
    check_part(_Records())
    with pytest.raises(PartError, match=said):
        check_part(_Records(fault=fault))


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
    for part in (_Sees, _Overwrites, _Unseeded, _Twice, _OwnDraws, _Records):
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

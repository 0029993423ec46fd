"""Every source, feature and partition that is registered does what the base class of its kind promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from registered import registered

import p2psim
from p2psim.core.errors import MeaningError, MissingSourceError
from p2psim.core.randomness import stream_key
from p2psim.data.classes import Column
from p2psim.data.features import apply_features
from p2psim.data.features.maps import Fitted
from p2psim.data.partitions import check_division
from p2psim.data.prepare import prepare
from p2psim.data.records import DataRequest, Held, Table
from p2psim.data.section import DataSection
from p2psim.data.sources import Arrays


def kind(part):
    return part.kind


@settings(max_examples=15)
@pytest.mark.parametrize("partition", registered("partition"), ids=kind)
@given(rows=st.integers(12, 80), seed=st.integers(0, 1000))
def test_rows_are_divided_by_the_generator_alone(partition, rows, seed):
    labels = np.random.default_rng(seed).choice([-1.0, 1.0], rows)
    column = Column(np.arange(rows) % 3) if partition.divides_by else None

    def divided(draws):
        return partition.split(labels, 3, column, np.random.default_rng(draws))

    owners, names = divided(seed)
    check_division(owners, names, rows, 3, partition.kind)
    again, _ = divided(seed)
    assert all(np.array_equal(one, other) for one, other in zip(owners, again, strict=True))


@pytest.mark.parametrize("partition", registered("partition"), ids=kind)
def test_too_few_rows_are_refused_by_a_key_of_the_partition(partition):
    column = Column(np.arange(2)) if partition.divides_by else None
    with pytest.raises(MeaningError) as caught:
        partition.split(np.ones(2), 3, column, np.random.default_rng(0))
    assert caught.value.faults[0].key.startswith("data.partition")


def held(seed, ratings=False):
    """Records of two owners, with public rows."""
    random = np.random.default_rng(seed)
    X, public = (random.normal(size=(rows, 3)) for rows in (30, 20))
    if ratings:
        X, public = (random.integers(0, 5, (rows, 1)).astype(float) for rows in (30, 20))
    return Held(
        X, random.normal(size=30), np.array([0, 12, 30]), tuple("abc"[: X.shape[1]]), ("0", "1"), public, np.zeros(20),
        x_l1=1.0, x_max=1.0, items=5 if ratings else None,
    )  # fmt: skip


@settings(max_examples=10)
@pytest.mark.parametrize("feature", registered("feature"), ids=kind)
@given(seed=st.integers(0, 1000))
def test_features_are_fitted_without_owners_records(feature, seed):
    """Rows are mapped one by one, and what other owners hold changes nothing, unless the feature says so."""
    records = held(seed, feature.needs_ratings)
    key = stream_key(seed, None, "data")
    done, (fitted,) = apply_features([feature], records, key)
    again, (fitted_again,) = apply_features([feature], records, key)
    assert done.X.tobytes() == again.X.tobytes()
    assert fitted == fitted_again
    assert fitted["kind"] == feature.kind
    assert tuple(fitted["names"]) == done.names
    assert len(set(done.names)) == len(done.names)
    assert done.X.shape == (30, len(done.names))
    assert done.public.shape == (20, len(done.names))
    assert done.X.dtype == done.public.dtype == np.float64
    assert np.isfinite(done.X).all()
    assert done.items is done.x_l1 is done.x_max is None
    if not feature.data_dependent:
        other = Held(**(vars(records) | {"X": records.X[::-1].copy()}))
        turned, (of_others,) = apply_features([feature], other, key)
        assert of_others == fitted
        np.testing.assert_allclose(turned.X[::-1], done.X, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("feature", registered("feature"), ids=kind)
def test_features_say_what_they_need(feature):
    records = held(1, feature.needs_ratings)
    bare = Held(**(vars(records) | {"public": records.public[:0], "public_labels": np.empty(0)}))
    if feature.needs_public:
        with pytest.raises(MeaningError, match="public rows, of which there are none"):
            apply_features([feature], bare, np.zeros(2, np.uint64))
    else:
        assert len(apply_features([feature], bare, np.zeros(2, np.uint64))[0].X) == 30
    other = held(1, not feature.needs_ratings)
    with pytest.raises(MeaningError, match="ratings"):
        apply_features([feature], other, np.zeros(2, np.uint64))


def test_each_random_feature_has_a_stream_of_its_own():
    (fourier,) = (one for one in registered("feature") if one.kind == "fourier")
    _, (first, second) = apply_features([fourier, fourier], held(0), stream_key(0, None, "data"))
    assert first["phases"] != second["phases"]


#: Small files in place of those that somebody may have.
FILES = {
    "csv": "age,hours\n30,1\n40,2\n50,3\n",
    "libsvm": "30 1:1\n40 1:2\n50 2:3\n",
    "creditcard": "Time,V1,Amount,Class\n0,1.5,2,0\n1,-1.5,2,1\n2,0.5,7,0\n",
    "movielens-100k": "1\t1\t5\t0\n1\t2\t3\t0\n2\t1\t4\t0\n",
}


@pytest.mark.parametrize("source", [one for one in registered("source") if one.kind != "parquet"], ids=kind)
def test_sources_give_finite_records_of_their_shapes(source, tmp_path):
    if source.kind in FILES:
        (tmp_path / "file").write_text(FILES[source.kind])
        source = source.model_copy(update={"path": str(tmp_path / "file")})
    request = DataRequest(stream_key(0, None, "data"), 3)
    if source.needs:
        try:
            source.load(request)
        except MissingSourceError:
            pytest.skip(f"{source.kind} needs {source.needs}")
    found, again = source.load(request), source.load(request)
    assert found.X.dtype == found.y.dtype == np.float64
    assert found.X.shape == (len(found.y), len(found.names))
    assert np.isfinite(found.X).all()
    assert np.isfinite(found.y).all()
    assert found.X.tobytes() == again.X.tobytes()
    assert all((source.about, source.citation, source.licence))
    if isinstance(found, Table):
        assert not source.generated
        x_l1, x_max = (np.inf if bound is None else bound for bound in source.x_bounds())
        assert np.abs(found.X).sum(axis=1).max() <= x_l1
        assert np.abs(found.X).max() <= x_max
        assert all(len(found.columns[name]) == len(found.y) for name in found.columns)
    else:
        assert len(found.labels) == len(found.offsets) - 1 == 3
        assert source.x_bounds() == (found.x_l1, found.x_max)


class _Bad(p2psim.Partition):
    """Gives what it is told to."""

    kind: str = "bad"
    owners: list[list[int]]

    def split(self, labels, agents, column, random):
        return [np.array(rows, dtype=np.int64) for rows in self.owners], tuple(
            map(str, range(len(self.owners)))
        )


@pytest.mark.parametrize(
    ("owners", "said"),
    [
        ([[0, 1], [1, 2]], "to one owner at most"),
        ([[0, 1], [8]], "to one owner at most"),
        ([[0, 1], [-1]], "to one owner at most"),
        ([[0, 1], []], "leaves an owner without a record"),
        ([], "leaves an owner without a record"),
    ],
)
def test_a_partition_that_errs_is_refused(owners, said):
    section = DataSection(
        source=Arrays.rows(np.ones((8, 1)), np.ones(8)), partition=None, shuffle=False
    ).model_copy(update={"partition": _Bad(owners=owners)})
    with pytest.raises(MeaningError, match=said):
        prepare(section, 0, None)


class _Short(p2psim.Feature):
    """Names more features than it makes."""

    kind: str = "short"

    def fit(self, public, names, key, random):
        return Fitted(lambda rows: rows[:, :1], names)


def test_a_feature_that_errs_is_refused():
    with pytest.raises(
        MeaningError, match=r"data\.features\.0: short names 3 features, and makes .*\(30, 1\)"
    ):
        apply_features([_Short()], held(0), np.zeros(2, np.uint64))

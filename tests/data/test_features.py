import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psim.core.errors import MeaningError
from p2psim.data.features import apply_features
from p2psim.data.features.maps import PCA, RandomFourier, Standardise, Whiten
from p2psim.data.records import Held

pytestmark = pytest.mark.blas


def records(seed=0, rows=60, columns=4):
    random = np.random.default_rng(seed)
    return random.normal(size=(rows, columns)) @ random.normal(size=(columns, columns)) + random.normal(
        size=columns
    )


def names(X):
    return tuple(f"x{j}" for j in range(X.shape[1]))


def done_with(steps, X, public):
    """Records of one owner after the steps, and what was fitted."""
    one = np.array([0, len(X)])
    held = Held(X, np.zeros(len(X)), one, names(X), ("0",), public, np.zeros(len(public)))
    return apply_features(steps, held, np.zeros(2, np.uint64))


def test_standardise_by_the_public_rows():
    X, public = records(1), records(2)
    done, _ = done_with([Standardise()], X, public)
    np.testing.assert_allclose(done.public.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(done.public.std(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(done.X, (X - public.mean(axis=0)) / public.std(axis=0), rtol=1e-12)


@given(st.integers(0, 50), st.integers(1, 4))
def test_pca_gives_uncorrelated_directions_in_order_of_variance(seed, components):
    public = records(seed)
    done, fitted = done_with([PCA(components=components)], public, public)
    covariance = np.cov(done.public.T, bias=True).reshape(components, components)
    expected = np.linalg.svd(public - public.mean(axis=0), compute_uv=False) ** 2 / len(public)
    np.testing.assert_allclose(covariance, np.diag(expected[:components]), atol=1e-9 * expected[0])
    matrix = np.array(fitted[0]["matrix"])
    np.testing.assert_allclose(matrix.T @ matrix, np.eye(components), atol=1e-10)
    assert (matrix[np.abs(matrix).argmax(axis=0), range(components)] > 0).all()


@given(st.integers(0, 200))
def test_signs_of_directions_do_not_hang_on_rounding(seed):
    """Two standardised columns always have the directions (1, 1) and (1, −1), up to √2: the first entry is positive."""
    public = records(seed, 30, 2)
    _, fitted = done_with([Standardise(), PCA(components=2)], public, public)
    matrix = np.array(fitted[1]["matrix"])
    wanted = [[1, 1], [1, -1]] if np.corrcoef(public.T)[0, 1] > 0 else [[1, -1], [1, 1]]
    np.testing.assert_allclose(matrix.T, np.array(wanted) / np.sqrt(2), atol=1e-6)


@given(st.integers(0, 50), st.booleans())
def test_whitened_public_rows_have_identity_covariance(seed, reduced):
    public = records(seed)
    steps = [PCA(components=3), Whiten()] if reduced else [Whiten()]
    done, _ = done_with(steps, records(seed + 1), public)
    np.testing.assert_allclose(np.cov(done.public.T, bias=True), np.eye(3 if reduced else 4), atol=1e-6)


def test_whitening_of_whitened_rows_changes_nothing():
    public = records(3)
    once, _ = done_with([Whiten()], public, public)
    twice, _ = done_with([Whiten(), Whiten()], public, public)
    np.testing.assert_allclose(twice.X, once.X, atol=1e-8)


def test_constant_columns_are_dropped_and_named():
    X, public = records(1), records(2)
    public[:, 1] = 0.1
    done, fitted = done_with([Standardise()], X, public)
    assert done.names == ("x0", "x2", "x3")
    assert done.X.shape == (60, 3)
    assert fitted[0]["dropped"] == ["x1"]


@pytest.mark.parametrize(
    ("steps", "public", "key", "words"),
    [
        ([Standardise()], np.empty((0, 3)), "data.public", "none"),
        ([PCA(components=1)], np.empty((0, 3)), "data.public", "none"),
        ([Standardise()], np.ones((5, 3)), "data.features.0", "no column varies"),
        (
            [PCA(components=4)],
            records(0, 20, 3),
            "data.features.0.components",
            "at most the 3 columns, got 4",
        ),
        ([PCA(components=3)], records(0, 3, 3), "data.features.0", "vary in 2 only"),
        ([Whiten()], np.ones((5, 3)), "data.features.0", "vary in 0 only"),
        ([Standardise(), Whiten()], records(0, 3, 3), "data.features.1", "{kind: pca, components: 2}"),
        ([Whiten()], np.repeat(records(0, 30, 1), 2, axis=1), "data.features.0", "vary in 1 only"),
    ],
)
def test_refused(steps, public, key, words):
    with pytest.raises(MeaningError) as caught:
        done_with(steps, records(0, 10, 3)[:, : public.shape[1]], public)
    assert caught.value.faults[0].key == key
    assert words in caught.value.faults[0].message


def test_random_fourier_features_make_a_gaussian_kernel():
    """⟨z(x), z(x′)⟩ has the mean exp(−‖x − x′‖²/(2·width²)), and a standard deviation of at most 1/√q."""
    x = np.array([[0.0, 0.0], [1.0, 0.5], [-2.0, 1.0]])
    step = RandomFourier(components=40_000, width=1.5)
    fitted = step.fit(np.empty((0, 2)), ("a", "b"), "data.features.0", np.random.default_rng(1))
    features = fitted.apply(x)
    squares = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(
        features @ features.T, np.exp(-squares / (2 * 1.5**2)), atol=5 / np.sqrt(40_000)
    )
    again = step.restored(fitted.numbers, ("a", "b"))
    np.testing.assert_array_equal(again(x), features)

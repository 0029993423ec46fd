"""A source, a feature and a partition from outside p2psim, used from a scenario file, by workers, and verified."""

import json
from pathlib import Path

import numpy as np
import pytest
from plugin_cases import PARTS, p2psim, within
from registered import PLUGINS

from p2psim.core.errors import InputError
from p2psim.data.prepare import prepare
from p2psim.data.section import DataSection

HEAD = "@relation r\n@attribute age numeric\n@attribute 'a b' {x, 'y z'}\n@attribute pays {no, yes}\n@data\n"


def test_a_study_of_such_data(tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = p2psim("run", str(PLUGINS / "people.yaml"), "--out", str(out), "--jobs", "2", *PARTS)
    assert done.returncode == 0, done.stderr
    assert within("verify", str(out), *PARTS).returncode == 0
    (origin,) = json.loads((out / "manifest.json").read_text())["made_by"]["parts"].values()
    assert [name.partition(":")[2] for name in origin["used"]] == ["Arff", "Fourier", "Geometric"]


def test_their_names_are_unknown_without_the_package() -> None:
    done = within("check", str(PLUGINS / "people.yaml"))
    assert done.returncode == 2
    for said in ("data.source: unknown kind 'arff'", "data.features.1: unknown kind 'fourier'"):
        assert said in done.stderr
    assert "data.partition: unknown kind 'geometric'" in done.stderr


def prepared(path: Path, text: str, **tree: object) -> object:
    path.write_text(text)
    section = {"source": {"kind": "arff", "path": str(path), "y": "pays"}, "shuffle": False, **tree}
    return prepare(DataSection.model_validate(section), 0, None)


def test_an_arff_file_is_read_as_written(tmp_path: Path) -> None:
    """Nominal values are numbered in the order of their declaration; a column of the partition is no feature."""
    text = HEAD + "% a remark\n1.5, x, no\n\n2,'y z',yes\n-3e1, 'y z', no\n"
    data = prepared(tmp_path / "a.arff", text, partition={"kind": "equal", "agents": 1})
    assert data.X.tolist() == [[1.5, 0.0], [2.0, 1.0], [-30.0, 1.0]]  # type: ignore[attr-defined]
    assert data.y.tolist() == [-1.0, 1.0, -1.0]  # type: ignore[attr-defined]
    held = prepared(tmp_path / "a.arff", text, partition={"kind": "column", "column": "a b"})
    assert held.labels == ("x", "y z")  # type: ignore[attr-defined]
    assert held.X.tolist() == [[1.5], [2.0], [-30.0]]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + "1, x\n", ":6: must have 3 values, got 2"),
        (HEAD + "?, x, no\n", ":6: 'age' must be a finite number, got '?'"),
        (HEAD + "inf, x, no\n", "must be a finite number, got 'inf'"),
        (HEAD + "1, z, no\n", ":6: 'a b' must be one of x, y z, got 'z'"),
        (HEAD, "has no rows after @data"),
        (HEAD.replace("numeric", "date"), ":2: 'age' must be numeric, real, integer or {values}, got 'date'"),
        (HEAD.replace("'a b'", "age"), ":3: two attributes are called 'age'"),
        (HEAD.replace("pays", "pay") + "1, x, no\n", "no column is called 'pays' (did you mean 'pay'?)"),
        (HEAD.replace("no, yes", "no, yes, perhaps") + "1, x, no\n", "must be numeric or have 2 values"),
        ("age;pays\n1;2\n", ":1: expected @attribute NAME TYPE or @data"),
    ],
)
def test_what_is_wrong_with_an_arff_file_is_said_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        prepared(tmp_path / "a.arff", text, partition={"kind": "equal", "agents": 1})
    assert said in str(caught.value)
    assert caught.value.faults[0].key.startswith("data.source")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    section = {"source": {"kind": "arff", "path": str(tmp_path), "y": "pays"}}
    with pytest.raises(InputError, match="is a folder, not a file"):
        prepare(DataSection.model_validate(section), 0, None)


def test_random_fourier_features_estimate_a_gaussian_kernel(tmp_path: Path) -> None:
    """E zᵀz' = exp(−‖x − x'‖²/2); a mean of 20,000 numbers of variance at most 2, six standard errors: 0.06."""
    from p2psim_example_parts.fourier import Fourier

    from p2psim.data.features.maps import Fitted

    random = np.random.default_rng(3)
    X = random.normal(size=(6, 3))
    made: Fitted = Fourier(components=20_000).fit(X[:0], ("a", "b", "c"), "data.features.0", random)
    found = made.apply(X)
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(found @ found.T, np.exp(-distances / 2), atol=0.06)


def test_geometric_sizes() -> None:
    """Shares 4/7, 2/7 and 1/7 of 70 rows, which are whole."""
    from p2psim_example_parts.geometric import Geometric

    owners, names = Geometric(ratio=0.5).split(np.zeros(70), 3, None, np.random.default_rng(0))
    assert [rows.size for rows in owners] == [40, 20, 10]
    assert names == ("0", "1", "2")

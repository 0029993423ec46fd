"""Data sets inside scikit-learn: what their documentation says of them."""

import shutil
import subprocess
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from p2psim.core.errors import MeaningError, MissingSourceError
from p2psim.data.prepare import prepare, public_bounds
from p2psim.data.section import DataSection
from p2psim.data.sources import list_sources


def section(source, **tree):
    return DataSection.model_validate({"source": source, "partition": {"kind": "equal", "agents": 3}, **tree})


def test_digits_are_those_of_the_package():
    """Against its own loader, in another process: nothing of the package is imported here."""
    before = "sklearn" in sys.modules
    data = prepare(section("digits", shuffle=False), 0, 0)
    assert ("sklearn" in sys.modules) == before
    program = (
        "import sys, sklearn.datasets as d; import numpy as np; X, y = d.load_digits(return_X_y=True);"
        "sys.stdout.buffer.write(np.column_stack([X, y]).astype(float).tobytes())"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    theirs = np.frombuffer(answer.stdout).reshape(1_797, 65)
    np.testing.assert_array_equal(np.column_stack([data.X * 16, data.y]), theirs)


def test_digits_have_ten_classes():
    data = prepare(section("digits"), 0, 0)
    assert data.class_names == tuple("0123456789")
    assert np.bincount(data.y.astype(int)).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert (data.X.min(), data.X.max()) == (0.0, 1.0)


def test_bounds_of_grey_levels_are_public():
    one = section("digits", classes=[3, 8])
    data = prepare(one, 0, 0)
    assert (data.x_l1, data.x_max, data.y_max) == public_bounds(one, data.y) == (64.0, 1.0, 1.0)
    assert np.abs(data.X).sum(axis=1).max() <= 64
    mapped = prepare(section("digits", public={"last": 300}, features=["standardise"]), 0, 0)
    assert (mapped.x_l1, mapped.x_max) == (None, None)


def test_two_digits_are_signs():
    data = prepare(section("digits", classes=[3, 8]), 0, 0)
    assert data.class_names == ("3", "8")
    assert ((data.y == -1).sum(), (data.y == 1).sum()) == (183, 174)
    even = prepare(section("digits", classes={"even": [0, 2, 4, 6, 8], "odd": [1, 3, 5, 7, 9]}), 0, 0)
    assert ((even.y == -1).sum(), (even.y == 1).sum()) == (891, 906)


def test_tumours_are_malignant_or_benign():
    data = prepare(section("breast-cancer"), 0, 0)
    assert data.class_names == ("malignant", "benign")
    assert ((data.y == -1).sum(), (data.y == 1).sum()) == (212, 357)
    # The documentation's table of statistics: radius (mean), area (mean), fractal dimension (worst).
    for column, low, high in ((0, 6.981, 28.11), (3, 143.5, 2501.0), (29, 0.055, 0.208)):
        assert data.X[:, column].min() == pytest.approx(low, abs=5e-4)
        assert data.X[:, column].max() == pytest.approx(high, abs=6e-4)


@pytest.mark.parametrize(
    ("source", "column", "owners"),
    [("digits", "digit", tuple("0123456789")), ("breast-cancer", "diagnosis", ("benign", "malignant"))],
)
def test_owners_of_one_class_each(source, column, owners):
    data = prepare(section(source, partition={"kind": "column", "column": column}), 0, 0)
    assert data.labels == owners
    for i in range(len(owners)):
        assert np.ptp(data.y[data.offsets[i] : data.offsets[i + 1]]) == 0


def test_a_missing_package_names_the_command_that_cures_it(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingSourceError) as caught:
        prepare(section("digits"), 0, 0)
    assert str(caught.value) == (
        "data.source: scikit-learn is not installed, which this needs; run pip install 'p2psim[data]'"
    )
    assert {row["source"]: row["here"] for row in list_sources()}["digits"] == "no"


@pytest.mark.parametrize("damage", ["cut", "no-file", "no-gzip", "short"])
def test_a_damaged_package_names_the_command_that_cures_it(damage, tmp_path, monkeypatch):
    folder = Path(find_spec("sklearn").submodule_search_locations[0]) / "datasets" / "data"
    copy = tmp_path / "datasets" / "data"
    shutil.copytree(folder, copy)
    file = copy / "digits.csv.gz"
    if damage == "no-file":
        file.unlink()
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[:-5000])
    elif damage == "no-gzip":
        file.write_bytes(b"0,1,2\n")
    else:
        import gzip

        file.write_bytes(gzip.compress(b"\n".join(gzip.decompress(file.read_bytes()).splitlines()[:-1])))
    spec = ModuleSpec("sklearn", None, is_package=True)
    spec.submodule_search_locations[:] = [str(tmp_path)]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    with pytest.raises(
        MissingSourceError, match=r"another; run pip install 'p2psim\[data\]' --force-reinstall"
    ):
        prepare(section("digits"), 0, 0)


def test_a_digit_that_is_none_is_refused():
    with pytest.raises(MeaningError, match=r"data\.classes: no record has the label '10'"):
        prepare(section("digits", classes=[1, 10]), 0, 0)

"""Files in LibSVM's format, as scikit-learn reads and writes them, and without scikit-learn."""

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from p2psim.core.errors import InputError
from p2psim.data.prepare import prepare
from p2psim.data.section import DataSection


def prepared(path, **source):
    tree = {
        "source": {"kind": "libsvm", "path": str(path), **source},
        "partition": {"kind": "equal", "agents": 1},
    }
    return prepare(DataSection.model_validate({**tree, "shuffle": False}), 0, None)


@pytest.fixture(params=[True, False], ids=["scikit-learn", "own"])
def reader(request, monkeypatch):
    """Whether scikit-learn is there."""
    if not request.param:
        monkeypatch.delattr("sklearn.datasets.load_svmlight_file")


@pytest.mark.parametrize("zero_based", [True, False])
def test_a_file_is_read_as_it_was_written(tmp_path, reader, zero_based):
    random = np.random.default_rng(1)
    X = random.normal(size=(30, 7)) * (random.random((30, 7)) < 0.3)
    X[0, 0] = X[3, 6] = 1 / 3
    y = random.choice([-1.0, 1.0], 30)
    dump_svmlight_file(X, y, str(tmp_path / "t.svm"), zero_based=zero_based, comment="how it was made")
    data = prepared(tmp_path / "t.svm")
    np.testing.assert_allclose(data.X, X, rtol=1e-15)
    assert data.y.tolist() == y.tolist()
    assert data.fitted["source"]["columns"] == [f"x{j + (not zero_based)}" for j in range(7)]


def test_a_test_file_may_have_other_features(tmp_path, reader):
    (tmp_path / "t.svm").write_text("1 1:2 # a comment\n\n-1 qid:3 2:5\n")
    (tmp_path / "tests.svm").write_text("1 3:4\n")
    data = prepared(tmp_path / "t.svm", test_path=str(tmp_path / "tests.svm"))
    assert (data.X.tolist(), data.y.tolist()) == ([[2, 0, 0], [0, 5, 0]], [1, -1])
    assert (data.test_X.tolist(), data.test_y.tolist()) == ([[0, 0, 4]], [1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:2\nx 1:2\n", "t.svm:2: a label must be a finite number, got 'x'"),
        ("1 1:2\n1 2:1 1:2\n", "t.svm:2: index:value is expected, with indices that ascend; got '1:2'"),
        ("1 1:2 1:3\n", "t.svm:1: index:value is expected"),
        ("1 1:y\n", "t.svm:1: a value must be a finite number, got 'y'"),
        ("1 1:2\n1 1:nan\n", "finite"),
        ("1 a:2\n", "t.svm:1: index:value is expected"),
        ("", "has no rows"),
        ("1\n", "has no features"),
        ("1 60000000:1\n", "1 rows of 60,000,000 features are 60,000,000 values, more than 50,000,000"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(tmp_path, reader, text, message):
    (tmp_path / "t.svm").write_text(text)
    with pytest.raises(InputError, match=r"data\.source\.path") as caught:
        prepared(tmp_path / "t.svm")
    assert message in str(caught.value)

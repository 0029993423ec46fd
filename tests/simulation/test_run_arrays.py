import io
import pickle
import zipfile

import numpy as np
import pytest

from p2psim.simulation.workspace import RunArrays, members_of, read_member, write_archive

RUNS = [(cell, replica) for cell in range(3) for replica in range(12)]


@pytest.fixture
def path(tmp_path):
    with open(tmp_path / "noise.npz", "wb") as stream:
        write_archive(stream, ((f"{cell}/{replica}", np.array([cell, replica])) for cell, replica in RUNS))
    return tmp_path / "noise.npz"


def test_all_arrays_are_read_from_an_archive_that_is_opened_once(path, monkeypatch):
    opened = []

    class Counted(zipfile.ZipFile):
        def __init__(self, *args, **kwargs):
            opened.append(args)
            super().__init__(*args, **kwargs)

    monkeypatch.setattr(zipfile, "ZipFile", Counted)
    arrays = RunArrays(path)
    assert list(arrays) == RUNS
    assert {run: tuple(array) for run, array in arrays.items()} == {run: run for run in RUNS}
    assert len(opened) == 1


def test_a_run_without_arrays_is_missing_and_without_an_archive_all_are(path):
    assert (3, 0) not in RunArrays(path)
    assert not RunArrays(None)
    for arrays in (RunArrays(path), RunArrays(None)):
        with pytest.raises(KeyError):
            arrays[3, 0]


def test_arrays_can_be_handed_to_another_process(path):
    again = pickle.loads(pickle.dumps(RunArrays(path)))
    assert tuple(again[2, 11]) == (2, 11)


ARRAYS = {
    "plain": np.arange(6.0).reshape(2, 3),
    "by columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "every other": np.arange(7, dtype=np.int32)[::2],
    "empty": np.empty((0, 3)),
    "one number": np.array(3.5),
    "big-endian": np.arange(4, dtype=">i4"),
    "truth values": np.array([True, False]),
    "text": np.array(["a", "bc"]),
    "records": np.zeros(2, [("a", "<i8"), ("b", "u1")]),
}


class OneWay(io.BytesIO):
    """A stream in which one cannot go back."""

    def seek(self, *_):
        raise io.UnsupportedOperation


@pytest.mark.parametrize("kind", [io.BytesIO, OneWay])
def test_members_are_what_numpy_saves(kind, tmp_path):
    stream, path = kind(), tmp_path / "arrays.npz"
    write_archive(stream, ARRAYS.items())
    path.write_bytes(stream.getvalue())
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for name, array in ARRAYS.items():
            saved = io.BytesIO()
            np.save(saved, array)
            assert archive.read(f"{name}.npy") == saved.getvalue()
    for name, place in members_of(path).items():
        np.testing.assert_array_equal(read_member(path, place), ARRAYS[name])

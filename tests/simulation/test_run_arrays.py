import pickle
import zipfile

import numpy as np
import pytest

from p2psim.simulation.workspace import RunArrays, write_archive

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

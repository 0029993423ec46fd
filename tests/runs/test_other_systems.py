"""Runs on systems that lack what Linux has, as far as that can be tried on Linux."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import small_study as small

import p2psim
from p2psim.core.errors import FolderError, InputError
from p2psim.runs import store, system

SCRIPT = Path(__file__).with_name("as_on_windows.py")


@pytest.mark.skipif(sys.platform != "linux", reason="takes away what Linux has")
def test_spawned_workers_give_the_same_results_without_posix_and_in_an_odd_folder(tmp_path: Path) -> None:
    home = tmp_path / "Eigene Daten – 研究"
    home.mkdir()
    (home / "größe 1.yaml").write_text(small.scenario().to_yaml(), encoding="utf-8")
    command = [
        sys.executable,
        "-W",
        "error::ResourceWarning",
        str(SCRIPT),
        "run",
        "größe 1.yaml",
        "--jobs",
        "2",
    ]
    ran = subprocess.run(
        [*command, "--out", "aus gabe"], cwd=home, capture_output=True, text=True, timeout=280
    )
    assert ran.returncode == 0, ran.stderr
    alone = p2psim.run(small.scenario(), tmp_path / "alone", jobs=1)
    assert small.digests(home / "aus gabe") == small.digests(alone.path)


def test_a_folder_is_locked_without_flock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked: set[int] = set()

    def locking(descriptor: int, mode: int, size: int) -> None:
        """As ``msvcrt.locking`` without waiting: refuses what is locked already."""
        file = os.fstat(descriptor).st_ino
        if file in locked:
            raise PermissionError(13, "Permission denied")
        locked.add(file)

    monkeypatch.setattr(system, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
    with store.lock(tmp_path):
        assert store.is_running(tmp_path)
        with pytest.raises(FolderError, match="another run is writing into it"), store.lock(tmp_path):
            pass


@pytest.mark.parametrize("name", ["con", "AUX", "nul.yaml", "Com1", "lpt9 .x", "prn"])
def test_names_of_devices_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"must not be the name of a device of Windows, got '{name}'"):
        small.scenario(name=name)


@pytest.mark.parametrize("name", ["conference", "aux-study", "com10", "nul_l"])
def test_names_that_begin_like_a_device_are_names(name: str) -> None:
    assert small.scenario(name=name).name == name

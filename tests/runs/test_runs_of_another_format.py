"""Events of another version of the format are refused with what to do, and nothing is changed."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
import small_study as small

import p2psim
from p2psim.cli.main import main
from p2psim.core.errors import FolderError
from p2psim.core.events import FORMAT_VERSION


@pytest.fixture(params=[2, 3, 4])
def old(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A finished run whose events say that they are of an earlier format, written by p2psim 0.0.9."""
    folder = tmp_path / "old"
    p2psim.run(small.scenario(replicas=1), folder, progress=False)
    path = folder / "events.parquet"
    table = pq.read_table(path)
    said = {**table.schema.metadata, b"p2psim.events": str(request.param).encode()}
    pq.write_table(table.replace_schema_metadata(said), path)
    small.reseal(folder, lambda tree: tree["made_by"].update(p2psim="0.0.9"))
    return folder


def told(message: str) -> None:
    for part in (
        "events.parquet: event format ",
        ", written by p2psim 0.0.9",
        f"reads format {FORMAT_VERSION}",
        "the p2psim that wrote it",
        "--overwrite",
    ):
        assert part in message


def test_verify_says_which_format_and_what_to_do(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(old)]) == 2
    told(capsys.readouterr().err)


def test_nothing_is_added_to_them(old: Path) -> None:
    before = small.snapshot(old)
    with pytest.raises(FolderError) as raised:
        p2psim.run(small.scenario(replicas=2), old, progress=False)
    told(str(raised.value))
    assert small.snapshot(old) == before


def test_they_can_be_replaced(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    p2psim.run(small.scenario(replicas=1), old, overwrite=True, progress=False)
    assert main(["verify", str(old)]) == 0


def test_tables_without_a_format_are_of_an_unknown_one(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = old / "events.parquet"
    pq.write_table(pq.read_table(path).replace_schema_metadata({}), path)
    small.reseal(old)
    assert main(["verify", str(old)]) == 2
    assert "event format unknown" in capsys.readouterr().err

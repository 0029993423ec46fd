"""``--overwrite`` removes what p2psim made and lists, follows no link, and touches nothing else."""

import json
from pathlib import Path

import pytest
import small_study as small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import p2psim
from p2psim.core.errors import FolderError
from p2psim.runs import store
from p2psim.runs.seals import print_of, sealed

#: Names that the user's own files may have, wherever a run folder has files of its own.
OWN = (
    "notes.txt",
    "figures/photo.png",
    "figures/fitness.svg",
    "figures/deep/er.png",
    "metrics.csv",
    "data/x.npz",
)


def run(folder: Path, seed: int = 6, **options: object) -> p2psim.Result:
    return p2psim.run(small.scenario(replicas=1, seed=seed), folder, progress=False, **options)  # type: ignore[arg-type]


def draw(folder: Path) -> list[Path]:
    """Figures of a run that are listed as made, without the time that drawing takes."""
    (folder / "figures").mkdir(exist_ok=True)
    files = [folder / "figures" / f"curves.{kind}" for kind in ("png", "svg")]
    for file in files:
        file.write_bytes(b"drawn")
    store.add_figures(folder, files)
    return files


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("fresh") / "run"
    run(folder)
    return small.everything(folder)


@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(own=st.sets(st.sampled_from(OWN)), edited=st.booleans(), interrupted=st.booleans())
def test_only_what_was_made_is_removed(
    fresh: dict[str, object],
    tmp_path_factory: pytest.TempPathFactory,
    own: set[str],
    edited: bool,
    interrupted: bool,
) -> None:
    folder = tmp_path_factory.mktemp("overwritten") / "run"
    run(folder, seed=5)
    drawn = draw(folder)
    if edited:
        drawn[0].write_bytes(b"drawn, then retouched")
        own = own | {"figures/curves.png"}
    if interrupted:
        (folder / "parts" / "0123456789abcdef-0").mkdir(parents=True)
        (folder / "parts" / "data").mkdir()
    for name in own - {"figures/curves.png"}:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("mine")
    kept = {name: (folder / name).read_bytes() for name in own}
    run(folder, overwrite=True)
    left = small.everything(folder)
    assert {name: left.pop(name) for name in own} == kept
    assert left == fresh


def test_what_was_drawn_is_listed_and_goes(tmp_path: Path) -> None:
    result = run(tmp_path / "run", seed=5)
    files = result.plot("fitness")
    assert files
    elsewhere = result.plot("fitness", folder=tmp_path / "paper")
    run(tmp_path / "run", overwrite=True)
    assert not (tmp_path / "run/figures").exists()
    assert all(file.exists() for file in elsewhere)


@pytest.mark.parametrize("name", ["figures", "metrics.parquet", "figures/curves.png", "run"])
def test_no_link_is_followed(fresh: dict[str, object], tmp_path: Path, name: str) -> None:
    """What a link leads to stays; the run folder itself may be a link."""
    folder = tmp_path / "run"
    run(folder, seed=5)
    draw(folder)
    place, target = tmp_path / name if name == "run" else folder / name, tmp_path / "elsewhere"
    place.rename(target)
    place.symlink_to(target)
    before = small.snapshot(target) if target.is_dir() else target.read_bytes()
    run(folder, overwrite=True)
    if name == "run":
        assert place.is_symlink()
        assert small.everything(target) == fresh
        return
    assert (small.snapshot(target) if target.is_dir() else target.read_bytes()) == before
    left = {key: value for key, value in small.everything(folder).items() if not key.startswith("figures")}
    assert left == fresh


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", ["models.npz", "parts", "parts/mine", "ledger.parquet"])
def test_what_stands_in_the_way_is_named_and_nothing_changes(
    tmp_path: Path, name: str, overwrite: bool
) -> None:
    """A file or folder of the user where results go: it could only be lost."""
    folder = tmp_path / "run"
    run(folder, seed=6)
    if name == "ledger.parquet":
        (folder / name).unlink()
        (folder / name).mkdir()
    elif name == "parts/mine":
        (folder / name).mkdir(parents=True)
    else:
        (folder / name).write_text("mine")
    before = small.snapshot(folder)
    with pytest.raises(FolderError) as raised:
        p2psim.run(small.scenario(replicas=2, seed=6), folder, overwrite=overwrite, progress=False)
    assert str(folder / name) in str(raised.value)
    assert small.snapshot(folder) == before


def test_a_listing_leads_nowhere_else(tmp_path: Path) -> None:
    """A forged list of figures names files outside of them."""
    folder = tmp_path / "run"
    run(folder, seed=5)
    (tmp_path / "thesis.tex").write_text("mine")
    (folder / "figures").mkdir()
    listed = {"figures": {"../../thesis.tex": print_of(tmp_path / "thesis.tex")}}
    (folder / store.LISTING).write_text(sealed(json.dumps(listed)))
    store.clear(folder)
    assert (tmp_path / "thesis.tex").read_text() == "mine"


def test_killed_while_it_overwrites_it_can_be_overwritten_again(
    fresh: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    run(folder, seed=5)
    (folder / "notes.txt").write_text("keep")
    with monkeypatch.context() as patch:
        patch.setattr(store, "begin", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(folder, overwrite=True)
    run(folder, overwrite=True)
    left = small.everything(folder)
    assert left.pop("notes.txt") == b"keep"
    assert left == fresh

"""A package of parts from outside p2psim, used from scenario files by every way in."""

import json
import shutil
from pathlib import Path

import pytest
from plugin_cases import PARTS, PLUGINS, p2psim, run_alone, started, within


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_alone(PLUGINS / "caveman.yaml", tmp_path_factory)


@pytest.fixture(scope="module")
def finished(alone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("plugins") / "run"
    done = p2psim("run", str(PLUGINS / "caveman.yaml"), "--out", str(out), "--jobs", "2", *PARTS)
    assert done.returncode == 0, done.stderr
    return out


def test_parts_are_used_by_workers_verified_and_kept_in_the_manifest(finished: Path) -> None:
    assert p2psim("verify", str(finished), *PARTS).returncode == 0
    (origin,) = json.loads((finished / "manifest.json").read_text())["made_by"]["parts"].values()
    assert origin["used"] == [
        "p2psim_example_parts.caveman:Caveman",
        "p2psim_example_parts.huber:Huber",
    ]


def test_the_same_bytes_with_one_worker(finished: Path, alone: Path) -> None:
    for name in ("metrics.parquet", "ledger.parquet", "events.parquet", "scenario.yaml"):
        assert (alone / name).read_bytes() == (finished / name).read_bytes()


@pytest.mark.parametrize("command", [("verify",), ("account", "run")], ids=lambda words: "-".join(words))
def test_a_reader_without_the_parts_says_which_are_missing(command: tuple[str, ...], finished: Path) -> None:
    done = within(*command, str(finished))
    assert done.returncode == 1
    assert "--parts p2psim_example_parts" in done.stderr
    assert "Traceback" not in done.stderr


def test_figures_and_comparisons_need_no_parts(finished: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    assert within("plot", str(copy)).returncode == 0
    assert within("compare", str(copy), str(finished)).returncode == 0


def test_verify_without_the_parts_still_checks_hashes(finished: Path, tmp_path: Path) -> None:
    done = within("verify", str(finished))
    assert done.returncode == 1
    assert "hashes" in done.stderr
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    ledger = bytearray((copy / "ledger.parquet").read_bytes())
    ledger[len(ledger) // 2] ^= 1
    (copy / "ledger.parquet").write_bytes(ledger)
    assert "ledger.parquet: damaged" in within("verify", str(copy)).stderr


def test_without_the_parts_their_names_are_unknown(tmp_path: Path) -> None:
    done = p2psim("check", str(PLUGINS / "caveman.yaml"))
    assert done.returncode == 2
    assert "unknown kind 'caveman'; known: star, complete" in done.stderr
    assert "unknown kind 'huber'; known: squared" in done.stderr
    assert done.stderr.endswith("note: parts and metrics of your own are known with --parts MODULE\n")


def test_list_and_schema_know_them() -> None:
    listed = within("list", "caveman", *PARTS)
    assert "Cliques in a circle" in listed.stdout
    schema = json.loads(within("schema", *PARTS).stdout)
    assert "Caveman" in schema["$defs"]
    assert "Caveman" not in json.loads(within("schema").stdout)["$defs"]


@pytest.mark.verification
def test_an_installed_package_needs_no_option(tmp_path: Path) -> None:
    """What pip leaves of an installed package: its files, and metadata with the entry point."""
    shutil.copytree(PLUGINS / "p2psim_example_parts", tmp_path / "p2psim_example_parts")
    metadata = tmp_path / "p2psim_example_parts-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: p2psim-example-parts\nVersion: 0.1.0\n")
    (metadata / "entry_points.txt").write_text("[p2psim.parts]\nexample = p2psim_example_parts\n")
    (metadata / "top_level.txt").write_text("p2psim_example_parts\n")
    out = tmp_path / "run"
    scenario = str(PLUGINS / "caveman.yaml")
    done = started("run", scenario, "--out", str(out), "--jobs", "2", paths=(tmp_path,))
    assert done.returncode == 0, done.stderr
    (origin,) = json.loads((out / "manifest.json").read_text())["made_by"]["parts"].values()
    assert (origin["package"], origin["version"]) == ("p2psim-example-parts", "0.1.0")
    assert started("verify", str(out), paths=(tmp_path,)).returncode == 0

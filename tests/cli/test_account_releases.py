"""``p2psim account releases`` and ``calibrate``: known values, what is drawn and what is refused."""

import json
import re
from pathlib import Path

import pytest

from p2psim.cli.main import main

#: 100 Laplace releases with ε₀ = .1 at δ = 1e-5, certified to these digits: the least that any account of the mechanism
#: can say, the formula of Kairouz, Oh and Viswanath, and RDP at its best order.
LAPLACE, KOV, RDP = 4.22034732508035958, 5.2981096617668809, 4.5326827742770176

#: One Gaussian release with μ = 1 at δ = 1e-5 (certified).
GAUSSIAN = 4.37717809568122


def accounts_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, float]:
    assert main(["account", "releases", *arguments, "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    key = "epsilon" if tree["delta"] is not None else "delta"
    return {row["accountant"]: row[key] for row in tree["accountants"]}


def test_a_hundred_laplace_releases(capsys: pytest.CaptureFixture[str]) -> None:
    found = accounts_of(capsys, "--loss", "0.1", "--count", "100", "--delta", "1e-5")
    assert found["basic"] == pytest.approx(10, rel=1e-12)
    assert found["kov"] == pytest.approx(KOV, rel=1e-12)
    assert found["rdp"] == pytest.approx(RDP, rel=1e-6)
    assert LAPLACE * (1 - 1e-9) <= found["pld"] <= LAPLACE * 1.001
    assert found["best"] == min(found.values())
    assert "gaussian" not in found
    # The same by scales, by another list, and the other way round.
    assert accounts_of(
        capsys, "--scale", "30", "--sensitivity", "3", "--count", "100", "--delta", "1e-5"
    ) == pytest.approx(found, rel=1e-12)
    assert accounts_of(capsys, "--loss", "0.1x40,0.1x60", "--delta", "1e-5") == pytest.approx(
        found, rel=1e-12
    )
    back = accounts_of(capsys, "--loss", "0.1x100", "--epsilon", str(found["pld"]))
    assert back["pld"] == pytest.approx(1e-5, rel=1e-3)
    assert back["basic"] == 1 or back["basic"] > 1e-5  # basic says nothing below 10 but what it must


def test_gaussian_releases_compose_to_one(capsys: pytest.CaptureFixture[str]) -> None:
    one = accounts_of(capsys, "--noise", "gaussian", "--loss", "1", "--delta", "1e-5")
    assert one["gaussian"] == pytest.approx(GAUSSIAN, rel=1e-11)
    many = accounts_of(capsys, "--noise", "gaussian", "--loss", "0.1", "--count", "100", "--delta", "1e-5")
    assert many["gaussian"] == pytest.approx(GAUSSIAN, rel=1e-11)
    assert "basic" not in many


def test_noises_can_be_mixed_and_cost_more_than_either(capsys: pytest.CaptureFixture[str]) -> None:
    laplace = accounts_of(capsys, "--loss", "0.1x10", "--delta", "1e-5")
    gaussian = accounts_of(capsys, "--loss", "gaussian:0.2x5", "--delta", "1e-5")
    mixed = accounts_of(capsys, "--loss", "0.1x10,gaussian:0.2x5", "--delta", "1e-5")
    assert mixed
    for name, epsilon in mixed.items():
        assert epsilon >= max(laplace[name], gaussian[name]) * (1 - 1e-9)
    assert "basic" not in mixed


def test_sampling_is_counted_where_it_can_be(capsys: pytest.CaptureFixture[str]) -> None:
    whole = accounts_of(capsys, "--loss", "1", "--count", "20", "--delta", "1e-5")
    sampled = accounts_of(capsys, "--loss", "1", "--count", "20", "--delta", "1e-5", "--rate", "0.05")
    assert {"basic", "pld"} <= set(sampled)
    for name, epsilon in sampled.items():
        assert 0 < epsilon < whole[name]
    same = accounts_of(capsys, "--loss", "1@0.05x20", "--delta", "1e-5")
    assert same == sampled


def test_the_table_names_who_cannot_tell(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", "releases", "--loss", "0.1", "--count", "100", "--delta", "1e-5"]) == 0
    printed = capsys.readouterr().out
    assert "ε of 100 releases at δ = 1e-05" in printed
    assert re.search(r"^basic +10$", printed, re.MULTILINE)
    assert re.search(r"^kov +5\.29811$", printed, re.MULTILINE)
    assert "left out: " in printed
    assert "gaussian" in printed


def test_only_the_accountants_that_were_named(capsys: pytest.CaptureFixture[str]) -> None:
    named = ["--accountant", "rdp", "--accountant", "basic"]
    assert list(accounts_of(capsys, "--loss", "0.1", "--delta", "1e-5", *named)) == ["rdp", "basic"]


def test_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    growth, trade_off = tmp_path / "growth.png", tmp_path / "trade.svg"
    arguments = [
        "--loss",
        "0.1",
        "--count",
        "30",
        "--delta",
        "1e-5",
        "--accountant",
        "basic",
        "--accountant",
        "kov",
    ]
    assert (
        main(["account", "releases", *arguments, "--plot", str(growth), "--trade-off", str(trade_off)]) == 0
    )
    names = {f"{name}.{kind}" for name in ("growth", "trade") for kind in ("png", "svg", "csv")}
    assert {path.name for path in tmp_path.iterdir()} == names


def calibrated(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict]:
    assert main(["account", "calibrate", *arguments, "--json"]) == 0
    return {row["accountant"]: row for row in json.loads(capsys.readouterr().out)["accountants"]}


def test_calibrated_noise_is_enough_and_hardly_more(capsys: pytest.CaptureFixture[str]) -> None:
    budget = ["--epsilon", "1", "--delta", "1e-6"]
    found = calibrated(capsys, "--count", "100", *budget)
    assert 41.48745 <= found["pld"]["scale"] <= 41.48745 * 1.001  # certified: 41.48748
    assert found["basic"]["scale"] == pytest.approx(100, rel=1e-9)
    for name, row in found.items():
        spent = accounts_of(capsys, "--loss", repr(row["loss"]), "--count", "100", "--delta", "1e-6")[name]
        assert 0.998 <= spent <= 1


def test_the_most_releases_are_within_the_budget_and_one_more_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = calibrated(capsys, "--loss", "0.1", "--epsilon", "1", "--delta", "1e-6")
    assert found["basic"]["releases"] == 10
    for name, row in found.items():
        most = row["releases"]
        spent = [
            accounts_of(capsys, "--loss", "0.1", "--count", str(count), "--delta", "1e-6")[name]
            for count in (most, most + 1)
        ]
        assert spent[0] <= 1 < spent[1], name


def test_without_delta_only_those_answer_who_need_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(calibrated(capsys, "--count", "10", "--epsilon", "1")) == ["basic"]


def test_a_printed_calibration_can_be_used_as_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", "calibrate", "--count", "100", "--epsilon", "1", "--delta", "1e-6"]) == 0
    printed = dict(re.findall(r"^(\w+) +\S+ +(\S+)$", capsys.readouterr().out, re.MULTILINE))
    scale = printed["pld"]
    spent = accounts_of(capsys, "--scale", scale, "--count", "100", "--delta", "1e-6")["pld"]
    assert spent <= 1


RELEASES = [
    (["--loss", "0.1"], "one of the arguments --delta --epsilon is required"),
    (["--delta", "1e-5"], "one of the arguments --loss --scale is required"),
    (["--loss", "0.1", "--delta", "1"], "--delta: must be at least 0 and below 1, got 1"),
    (["--loss", "0.1", "--delta", "nan"], "--delta"),
    (["--loss", "0.1", "--epsilon", "-1"], "--epsilon: must be a number, at least 0, got -1"),
    (["--loss", "zero", "--delta", "1e-5"], "--loss: a loss must be a positive number, got 'zero'"),
    (["--loss", "1", "--sensitivity", "1", "--delta", "1e-5"], "--sensitivity: needs --scale"),
    (["--scale", "1", "--sensitivity", "0", "--delta", "1e-5"], "--sensitivity: must be a positive number"),
    (["--loss", "1", "--count", "0", "--delta", "1e-5"], "--count: must be at least 1, got 0"),
    (["--loss", "1", "--rate", "2", "--delta", "1e-5"], "--rate: must be above 0 and at most 1, got 2"),
    (["--loss", "1", "--count", "10000001", "--delta", "1e-5"], "at most 10,000,000 releases"),
    (["--loss", "1", "--delta", "1e-5", "--accountant", "gaussian"], "gaussian cannot account for laplace"),
    (["--loss", "1", "--delta", "1e-5", "--accountant", "rpd"], "unknown accountant 'rpd'; known: "),
    (["--loss", "1", "--delta", "1e-5", "--plot", "growth.pdf"], "--plot: a file NAME.png"),
    (["--loss", "1", "--delta", "1e-5", "--plot", "nowhere/growth.png"], "--plot: a file NAME.png"),
]
CALIBRATE = [
    (["--count", "10"], "--epsilon"),
    (["--epsilon", "1"], "one of the arguments --count --loss is required"),
    (["--count", "10", "--epsilon", "0"], "--epsilon: must be a positive number, got 0"),
    (["--count", "0", "--epsilon", "1"], "--count: must be from 1"),
    (["--loss", "-1", "--epsilon", "1"], "--loss: must be a positive number"),
    (["--count", "10", "--epsilon", "1", "--accountant", "rdp"], "--delta: must be given for rdp"),
    (["--count", "10", "--epsilon", "1", "--noise", "gaussian"], "--delta: must be given for"),
]


@pytest.mark.parametrize(
    ("action", "arguments", "message"),
    [("releases", *row) for row in RELEASES] + [("calibrate", *row) for row in CALIBRATE],
)
def test_bad_input_ends_in_2_and_one_message(
    action: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["account", action, *arguments])
    except SystemExit as stop:  # argparse
        code = int(str(stop.code))
    assert code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err

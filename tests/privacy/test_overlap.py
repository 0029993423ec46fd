"""Records that several owners hold are charged for all of them, and divided budgets keep the promises that they can."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from star_cases import scenario

import p2psim
from p2psim.cli.main import main
from p2psim.core.errors import InputError
from p2psim.privacy.shares import Overlap, budgets_of, of_shared_record
from p2psim.runs.verification import verify_result

LOSSES = st.lists(st.floats(0, 10) | st.just(np.inf), min_size=1, max_size=6).map(np.array)


@given(losses=LOSSES, holders=st.integers(1, 8))
def test_the_most_that_any_set_of_holders_comes_to(losses, holders):
    """By trying all sets of at most κ owners that a record's owner is one of."""
    found = of_shared_record(losses, holders)
    for i in range(losses.size):
        others = [j for j in range(losses.size) if j != i]
        sets = itertools.chain.from_iterable(
            itertools.combinations(others, size) for size in range(min(holders, losses.size))
        )
        assert found[i] == pytest.approx(max(losses[i] + losses[list(one)].sum() for one in sets))


@given(
    epsilon=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6).map(np.array), holders=st.integers(1, 6)
)
def test_corrected_keeps_every_promise_and_printed_only_the_largest(epsilon, holders):
    holders = min(holders, epsilon.size)
    for form in ("printed", "corrected"):
        spent = of_shared_record(budgets_of(Overlap(holders=holders, form=form), epsilon), holders)
        kept = spent <= epsilon * (1 + 1e-12)
        assert kept.all() if form == "corrected" else kept[np.argmax(epsilon)]


def run(tmp_path, **changes):
    tree = {"privacy.epsilon": {0: 1.0, 1: 10.0, 2: 4.0}, "replicas": 1, **changes}
    return p2psim.run(scenario(tree), tmp_path / "run", progress=False)


@pytest.mark.parametrize(
    ("form", "spent"), [("printed", [0.5 + 5, 5 + 2, 2 + 5]), ("corrected", [1.0, 1.0, 1.0])]
)
def test_the_ledger_of_a_star_says_what_a_shared_record_loses(tmp_path, form, spent):
    """Two holders: printed budgets are .5, 5 and 2, corrected .5 each; rounds spend T − 1 of T shares."""
    algorithm = {"kind": "synchronous-descent", "horizon": 20, "rho": 0.1, "theta_max": 3.0}
    result = run(
        tmp_path,
        **{
            "network.exchange": {"kind": "round"},
            "learning.algorithm": algorithm,
            "privacy.overlap": {"holders": 2, "form": form},
        },
    )
    ledger = result.ledger
    np.testing.assert_allclose(ledger["epsilon_basic"], np.array(spent) * 19 / 20)
    assert ledger["budget"].tolist() == [1.0, 10.0, 4.0]
    assert ledger["over_budget"].tolist() == [form == "printed", False, form == "printed"]
    assert [one.verdict for one in verify_result(result)] == ["right"]


def test_accounts_of_a_run_are_those_of_its_ledger(tmp_path, capsys):
    """At δ each holder's releases are counted at δ/κ, so that their δ add up to it."""
    changes = {
        "privacy.overlap": {"holders": 2},
        "privacy.delta": 1e-5,
        "privacy.accountant": ["basic", "kov"],
    }
    result = run(tmp_path, **changes)
    assert main(["account", "run", str(result.path), "--json"]) == 0
    import json

    told = json.loads(capsys.readouterr().out)["agents"]
    for name in ("basic", "kov"):
        found = [row[f"epsilon_{name}"] for row in told]
        np.testing.assert_allclose(found, result.ledger[f"epsilon_{name}"], rtol=1e-12)
    assert set(result.ledger["delta_kov"]) == {1e-5}
    alone = p2psim.run(
        scenario({"privacy.epsilon": 0.5, "privacy.delta": 5e-6, "privacy.accountant": "kov", "replicas": 1}),
        tmp_path / "alone",
        progress=False,
    )
    # Owners who spend .5 each at half the δ: a record of two of them loses both.
    own = np.sort(alone.ledger["epsilon_kov"])[::-1]
    assert result.ledger["epsilon_kov"].max() == pytest.approx(own[0] + own[1], rel=1e-12)


def test_check_says_which_promises_are_broken(tmp_path):
    changes = {"privacy.overlap": {"holders": 2, "form": "printed"}}
    broken = " ".join(run(tmp_path, **changes).described.warnings)
    assert "for 2 of 3 owners: for owner 0 5.5, and 1 was promised" in broken


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"privacy.overlap": {"holders": 4}}, "must be at most the number of owners, 3, got 4"),
        ({"privacy.overlap": {"holders": 0}}, "privacy.overlap.holders"),
    ],
)
def test_more_holders_than_owners_are_refused(tmp_path, changes, said):
    with pytest.raises(InputError, match=said):
        run(tmp_path, **changes)
    assert not (tmp_path / "run").exists()

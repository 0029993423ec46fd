"""An audit of noise that a user wrote: its law is not known, and its claim is held to what it shows all the same."""

import pytest
from own_parts import let_in
from star_cases import scenario

from p2psim.audit.driver import audit


@pytest.fixture(autouse=True, scope="module")
def noise_of_ones_own():
    with let_in("own_noise"):
        yield


def changed(noise="logistic", **options):
    return scenario(
        {
            "privacy.mechanism": {"kind": noise, **options},
            "privacy.allocation": {"kind": "cap", "releases": 2},
        }
    )


def test_noise_as_claimed_stands():
    # False alarm 1e-6.
    found = audit(changed(), samples=2000)
    (one,) = found.audited
    assert one.trial.law is None
    assert not one.trial.faults
    assert 0 < one.trial.at_least < one.trial.epsilon


@pytest.mark.parametrize("stretch", [0.25, 0.1])
def test_noise_that_is_smaller_than_its_scale_says_is_refuted(stretch):
    (one,) = audit(changed(stretch=stretch), samples=2000).audited
    assert list(one.trial.faults) == ["more is shown than claimed"]


@pytest.mark.parametrize(("noise", "samples"), [("silent", 500), ("bounded", 2000), ("normal", 10_000)])
def test_noise_that_cannot_be_pure_is_refuted(noise, samples):
    """It claims pure DP at loss 1: no noise, uniform noise on ±2 scales, Gaussian noise."""
    (one,) = audit(changed(noise), samples=samples).audited
    assert "more is shown than claimed" in one.trial.faults


@pytest.mark.verification
def test_nine_tenths_of_the_noise_are_refuted_and_all_of_it_stands():
    small, right = (
        audit(changed("double-exponential", stretch=stretch), samples=80_000).audited[0].trial
        for stretch in (0.9, 1.0)
    )
    assert list(small.faults) == ["more is shown than claimed"]
    assert not right.faults

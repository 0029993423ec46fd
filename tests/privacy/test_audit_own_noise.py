"""An audit of noise that a user wrote: its law is not known, and its claim is held to what it shows all the same."""

import pytest
from star_cases import scenario

from p2psim.parts import load_parts
from p2psim.study.auditing.driver import audit

load_parts("own_noise")


def changed(noise="Logistic", **options):
    return scenario(
        {
            "privacy.mechanism": {"kind": "registered", "name": f"own_noise:{noise}", "options": options},
            "privacy.allocation": {"kind": "cap", "releases": 2},
        }
    )


def test_noise_as_claimed_stands():
    # False alarm 1e-6.
    found = audit(changed(), samples=2000)
    (one,) = found.audited
    assert one.trial.law is None
    assert one.trial.faults == ()
    assert 0 < one.trial.at_least < one.trial.epsilon


@pytest.mark.parametrize("stretch", [0.25, 0.1])
def test_noise_that_is_smaller_than_its_scale_says_is_refuted(stretch):
    (one,) = audit(changed(stretch=stretch), samples=2000).audited
    assert one.trial.faults == ("more is shown than claimed",)


@pytest.mark.parametrize(("noise", "samples"), [("Silent", 500), ("Bounded", 2000), ("Normal", 10_000)])
def test_noise_that_cannot_be_pure_is_refuted(noise, samples):
    """It claims pure DP at loss 1: no noise, uniform noise on ±2 scales, Gaussian noise."""
    (one,) = audit(changed(noise), samples=samples).audited
    assert "more is shown than claimed" in one.trial.faults


def test_nine_tenths_of_the_noise_are_refuted_and_all_of_it_stands():
    small, right = (
        audit(changed("DoubleExponential", stretch=stretch), samples=80_000).audited[0].trial
        for stretch in (0.9, 1.0)
    )
    assert small.faults == ("more is shown than claimed",)
    assert right.faults == ()

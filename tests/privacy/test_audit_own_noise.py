"""An audit of noise that a user wrote: its law is not known, and its claim is held to what it shows all the same."""

import pytest
from star_cases import scenario

from p2psim.parts import load_parts
from p2psim.study.auditing.driver import audit

load_parts("own_noise")


def changed(**options):
    return scenario(
        {
            "privacy.mechanism": {"kind": "registered", "name": "own_noise:Logistic", "options": options},
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

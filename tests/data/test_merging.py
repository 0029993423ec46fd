"""Owners of a group that act as one larger owner are one larger owner, whatever is done to their records."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2psim.core.errors import MeaningError
from p2psim.data.prepare import prepare
from p2psim.data.section import DataSection
from p2psim.data.sources.arrays import Arrays

CUT = 6
GROUPS = {"cut": [CUT], "names": ["small", "large"]}
PREPARED = ("X", "y", "offsets", "test_X", "test_y", "test_offsets")


def records(sizes):
    random = np.random.default_rng(len(sizes))
    return [random.normal(size=(m, 2)) for m in sizes], [random.normal(size=m) for m in sizes]


def section(X, y, **tree):
    return DataSection.model_validate(
        {"source": Arrays.per_agent(X, y), "features": [], "public": None, **tree}
    )


@given(
    st.lists(st.integers(1, CUT - 1), min_size=1, max_size=4),
    st.lists(st.integers(CUT, 12), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
    st.sampled_from([None, 0.3]),
    st.sampled_from([None, "user"]),
)
@settings(deadline=None, max_examples=40)
def test_merged_owners_are_one_who_holds_all_their_records(small, large, random, test_fraction, center):
    sizes = small + large
    random.shuffle(sizes)
    X, y = records(sizes)
    rest = {"test_fraction": test_fraction, "center": center}
    merged = prepare(section(X, y, groups={**GROUPS, "merge": True}, **rest), 3, 0, agents=2)
    sides = [[i for i, m in enumerate(sizes) if (m >= CUT) == above] for above in (False, True)]
    by_hand = prepare(
        section(
            [np.concatenate([X[i] for i in side]) for side in sides],
            [np.concatenate([y[i] for i in side]) for side in sides],
            **rest,
        ),
        3,
        0,
    )
    for name in PREPARED:
        assert getattr(merged, name).tobytes() == getattr(by_hand, name).tobytes(), name
    assert merged.labels == merged.groups == ("small", "large")
    assert merged.fitted["merged"] == sizes


def test_test_records_of_generated_owners_are_merged_too():
    tree = {
        "source": {
            "kind": "linear-classification",
            "agents": 4,
            "dimension": 3,
            "points": {"0": 3, "1": 9, "2": 4, "3": 8},
            "test_points": 5,
        },
        "groups": GROUPS,
    }
    apart = prepare(DataSection.model_validate(tree), 1, 0)
    merged = prepare(DataSection.model_validate({**tree, "groups": {**GROUPS, "merge": True}}), 1, 0)
    tests = np.split(apart.test_y, apart.test_offsets[1:-1])
    trained = np.split(apart.y, apart.offsets[1:-1])
    assert merged.y.tolist() == np.concatenate([trained[i] for i in (0, 2, 1, 3)]).tolist()
    assert merged.test_y.tolist() == np.concatenate([tests[i] for i in (0, 2, 1, 3)]).tolist()
    assert merged.test_offsets.tolist() == [0, 10, 20]
    assert apart.targets is not None
    assert merged.targets is None


@pytest.mark.parametrize(
    ("sizes", "agents", "message"),
    [
        ([7, 8], 2, "no owner is in group 'small'"),
        ([1, 2], 2, "no owner is in group 'large'"),
        ([1, 8, 9], 3, r"gives 2 owners, but network\.topology asks for 3"),
    ],
)
def test_refused(sizes, agents, message):
    with pytest.raises(MeaningError, match=message) as caught:
        prepare(section(*records(sizes), groups={**GROUPS, "merge": True}), 0, 0, agents=agents)
    assert caught.value.faults[0].key == "data.groups.merge"

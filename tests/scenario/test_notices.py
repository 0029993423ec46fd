"""Warnings are told once, with the cells that they concern."""

import itertools

import pytest

from p2psim.scenario.notices import Warned, in_order, is_repeated, lines, without_variants

GRID = [{"epsilon": e, "allocation": a} for e, a in itertools.product([1.0, 10.0, 100.0], ["horizon", "cap"])]


@pytest.mark.parametrize(
    ("cells", "label"),
    [
        (range(6), ""),
        ([], ""),
        ([4, 5], " (cells 4, 5: epsilon = 100)"),
        ([1], " (cell 1: epsilon = 1 and allocation = cap)"),
        ([1, 3, 5], " (cells 1, 3, 5: allocation = cap)"),
        ([0, 2], " (cells 0, 2: epsilon = 1, 10 and allocation = horizon)"),
        (
            [0, 3],
            " (cells 0, 3: epsilon = 1, allocation = horizon; epsilon = 10, allocation = cap)",
        ),
    ],
)
def test_cells_are_named_by_what_sets_them_apart(cells, label):
    assert lines([("too large", cells)], GRID) == ["too large" + label]


def test_each_text_is_told_once():
    found = [("a", [0]), ("b", [1]), ("a", [1]), ("b", [0, 2, 3, 4, 5])]
    assert lines(found, GRID) == ["a (cells 0, 1: epsilon = 1)", "b"]


def test_a_study_without_a_sweep_has_nothing_to_name():
    assert lines([("a", [0])], [{}]) == ["a"]


def test_many_cells_are_not_all_listed():
    grid = [{"seed": seed} for seed in range(100)]
    assert lines([("a", range(50))], grid) == [
        "a (cells 0, 1, 2, 3, 4, 5, …: seed = 0, 1, 2, 3, 4, 5, … (50 in all))"
    ]


def test_replicas_that_differ_in_numbers_alone_are_told_once():
    found = [
        ("h = 3.5, at most 2", [0]),
        ("h = 4e-05, at most 2", [0]),
        ("h = 3.7, at most 2", [0, 1]),
        ("n", [0]),
    ]
    assert without_variants(found) == [found[0], found[2], found[3]]
    told = lines(found[:1], GRID)
    assert is_repeated(lines([found[1]], GRID)[0], told)
    assert not is_repeated(lines([found[2]], GRID)[0], told)
    assert not is_repeated(lines([found[3]], GRID)[0], told)


def test_the_order_is_by_cell_then_text_whatever_came_first():
    found = [("b", [1, 3]), ("a", [2]), ("z", []), ("c", [1])]
    for given in (found, found[::-1]):
        assert [text for text, _ in in_order(given)] == ["z", "b", "c", "a"]


def test_counts_and_cells_add_up():
    assert Warned(2, frozenset("a")) + Warned(3, frozenset("ab")) == Warned(5, frozenset("ab"))

"""Groups of owners that a column of their records says."""

import pytest
from pydantic import ValidationError

from p2psim.core.errors import InputError
from p2psim.data.prepare import prepare
from p2psim.data.section import DataSection

ROWS = "a,who,tier,y\n1,u,gold,1\n2,v,tin,2\n3,u,gold,3\n4,w,gold,4\n5,v,tin,5\n"


def prepared(tmp_path, text=ROWS, source=None, **groups):
    (tmp_path / "t.csv").write_text(text)
    tree = {
        "source": source or {"kind": "csv", "path": str(tmp_path / "t.csv"), "y": "y"},
        "partition": None if source else {"kind": "column", "column": "who"},
        "groups": {"by": "column", "column": "tier", "names": ["tin", "gold"], **groups},
    }
    return prepare(DataSection.model_validate(tree), 0, None)


def test_a_group_is_the_value_in_the_owners_rows(tmp_path):
    data = prepared(tmp_path)
    assert (data.labels, data.groups) == (("u", "v", "w"), ("gold", "tin", "gold"))


@pytest.mark.parametrize(
    ("text", "groups", "message"),
    [
        (
            ROWS.replace("3,u,gold", "3,u,tin"),
            {},
            "owner u has 'gold' in row 1 ({0}:2) and 'tin' in row 3 ({0}:4), column 'tier'",
        ),
        (
            ROWS,
            {"names": ["gold"]},
            "data.groups.names: owner v has 'tin' in column 'tier'; names has ['gold']",
        ),
        (ROWS, {"column": "tire"}, "no column is called 'tire' (did you mean 'tier'?)"),
        (ROWS.replace("4,w,gold", "4,w,"), {}, "1 rows have no value, the first is in the rows of w"),
    ],
)
def test_columns_that_say_no_group_are_refused(tmp_path, text, groups, message):
    with pytest.raises(InputError) as caught:
        prepared(tmp_path, text, **groups)
    assert message.format(tmp_path / "t.csv") in str(caught.value)


def test_records_without_columns_have_no_such_groups(tmp_path):
    with pytest.raises(InputError, match=r"data\.groups\.by: linear-regression has no columns"):
        prepared(tmp_path, source={"kind": "linear-regression", "agents": 2})


@pytest.mark.parametrize(
    "groups",
    [{"cut": [3]}, {"column": None}, {"merge": True}, {"names": ["gold", "gold"]}, {"by": "records"}],
)
def test_keys_that_contradict_each_other(tmp_path, groups):
    with pytest.raises(ValidationError):
        prepared(tmp_path, **groups)

import math
import os

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from p2psim.core.errors import InputError
from p2psim.core.nodes import Place, find, plain
from p2psim.scenario.yaml import MOST_BYTES, read, read_file, write


def refusal(data: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        read(data, "f.yaml")
    return str(caught.value)


# The core schema of YAML 1.2.2, chapter 10.3.2, by its own table and its differences from YAML 1.1.
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5),
        ("1.0e+3", 1000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("-0", 0),
        ("+12", 12),
        ("010", 10),
        ("0o14", 12),
        ("0x3A", 58),
        (".inf", math.inf),
        ("-.Inf", -math.inf),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("0b11", "0b11"),
        ("2020-01-01", "2020-01-01"),
        ("'1'", "1"),
        ('"true"', "true"),
        ("tRUE", "tRUE"),
        ("nan", "nan"),
    ],
)
def test_scalars_follow_the_core_schema(text, value):
    read_back = plain(read(f"key: {text}\n"))["key"]
    assert read_back == value
    assert type(read_back) is type(value)


def test_nan_is_a_float():
    assert math.isnan(plain(read("a: .nan"))["a"])


def test_keys_are_text_as_written():
    assert plain(read("{0: a, true: b, '2': c, 1e-5: d}")) == {"0": "a", "true": "b", "2": "c", "1e-5": "d"}


def test_every_value_and_key_has_its_place():
    node = read("a:\n  - x\n  - {b: 1,\n     c: 2}\n", "f.yaml")
    found = find(node, ("a", "1", "c"))
    assert found is not None
    assert found.place == Place("f.yaml", 4, 9)
    inside = find(node, ("a", "1"))
    assert inside is not None
    assert inside.keys == {"b": Place("f.yaml", 3, 6), "c": Place("f.yaml", 4, 6)}


def test_nothing_is_null():
    assert plain(read("")) is None
    assert plain(read(b"\xef\xbb\xbf# only a comment\n")) is None


def test_duplicate_keys_name_both_places():
    assert refusal("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n").splitlines() == [
        "f.yaml:4:3: the key 'c' is given twice; the first is at 3:3",
        "f.yaml:5:1: the key 'a' is given twice; the first is at 1:1",
    ]
    assert "'0' is given twice" in refusal("{0: a, '0': b}")


@pytest.mark.parametrize(
    ("data", "start"),
    [
        ("a: [1, 2", "f.yaml:1:9: is not YAML: "),
        ("a: b: c", "f.yaml:1:5: is not YAML: "),
        ("a: 1\n\tb: 2\n", "f.yaml:2:1: is not YAML: "),
        ("a: 'x\n", "f.yaml:2:1: is not YAML: "),
        ("a: 1\nb: \x00", "f.yaml:2:4: is not YAML: the character"),
        (b"a: 1\nbc: \xff\n", "f.yaml:2:5: is not UTF-8 text: byte 0xff"),
        ('a: "\\ud800"', "f.yaml:1:4: half of a surrogate pair"),
        ("a: 1e999", "f.yaml:1:4: 1e999 is too large"),
        ("a: " + "9" * 5000, "f.yaml:1:4: 99999999999999999999… is too large"),
        ("a: !!python/object/apply:os.system [ls]", "f.yaml:1:4: tags are not allowed"),
        ("a: !!float 1", "f.yaml:1:4: tags are not allowed"),
        ("a: *b", "f.yaml:1:4: no anchor &b"),
        ("a: &a [1, *a]", "f.yaml:1:11: the alias *a stands inside"),
        ("--- 1\n--- 2\n", "f.yaml:2:1: a second document"),
        ("%YAML 1.1\n--- 1\n", "f.yaml:1:1: YAML 1.2 is expected, got 1.1"),
        ("# a comment\n\n%YAML 1.1\n---\na: 1\n", "f.yaml:3:1: YAML 1.2 is expected, got 1.1"),
        ("? [a]\n: 1", "f.yaml:1:3: a key must be"),
        (": 1", "f.yaml:1:1: a key is missing"),
        ("[" * 200_000, "f.yaml:1:51: more than 50"),
        ("a: " + "{b: " * 60 + "1" + "}" * 60, "f.yaml:1:200: more than 50"),
        ("x" * (MOST_BYTES + 1), "f.yaml: is larger than"),
        ("a: 1\nb: 0x" + "9" * 10_000, "f.yaml:2:4: 0x999999999999999999… is too large"),
        ("a: 1\nb: -" + "9" * 10_000, "f.yaml:2:4: -9999999999999999999… is too large"),
        (
            "a: 1\nb: " + "9" * 10_000 + ".5",
            "f.yaml:2:4: 9999999999999999999999999999999999999999… is too large",
        ),
        ('a: 1\nb: "\\UFFFFFFFF"', "f.yaml:2:5: is not YAML: \\UFFFFFFFF is not a character"),
        ('a: 1\nb: "\\U00110000"', "f.yaml:2:5: is not YAML: \\U00110000 is not a character"),
        ("%YAML 1.3\n--- 1\n", "f.yaml:1:1: YAML 1.2 is expected, got %YAML 1.3"),
        ("%YAML 1." + "9" * 5000 + "\n--- 1\n", "f.yaml:1:1: YAML 1.2 is expected, got %YAML 1.9"),
    ],
)
def test_refused_with_its_place(data, start):
    assert refusal(data).startswith(start)


def test_aliases_are_read():
    assert plain(read("a: &x {b: [1, 2]}\nc: *x\n")) == {"a": {"b": [1, 2]}, "c": {"b": [1, 2]}}


def test_a_bomb_is_refused_before_it_expands():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]" for i in range(30)]  # 9 to the 31st values
    assert "aliases expand to more than 10,000 values" in refusal("\n".join(lines))


def test_a_bomb_of_depth_is_refused():
    lines = ["a0: &a0 [x]"] + [f"a{i + 1}: &a{i + 1} [*a{i}]" for i in range(60)]
    assert "more than 50 mappings and lists" in refusal("\n".join(lines))


def test_a_file_that_cannot_be_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (
        tmp_path / "none.yaml",
        tmp_path,
        tmp_path / "pipe",
        "/dev/zero",
        tmp_path / ("x" * 300),
        "a\0b",
    ):
        with pytest.raises(InputError, match="cannot be read"):
            read_file(path)


@settings(max_examples=100)
@example('"\\U99999999"')
@example("a: !<")
@example("%TAG")
@example("%YAML 1.3\n--- 1")
@example("a: " + "9" * 10_000)
@example("- - ? :")
@given(st.text(alphabet=st.sampled_from("ab01:-?[]{}&*!|>'\"%@`#,~. \n\t\\x\x85\ud800é"), max_size=40))
def test_any_text_gives_values_or_an_input_error(text):
    try:
        plain(read(text))
    except InputError:
        return  # nothing else may be raised


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)
TEXT = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    [
        "yes",
        "on",
        "1e-5",
        "0x1F",
        "~",
        "null",
        "",
        "1_000",
        "a: b",
        "# c",
        "- d",
        "{",
        ".inf",
        "0o7",
        "\n",
        "é\n x ",
    ]
)
TREES = st.recursive(
    SCALARS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=12,
)


def typed(value):
    """Types too, since 1 == 1.0 == True."""
    if isinstance(value, dict):
        return {key: typed(entry) for key, entry in value.items()}
    return [typed(entry) for entry in value] if isinstance(value, list) else (type(value), value)


@settings(max_examples=100)
@given(st.dictionaries(TEXT, TREES, max_size=4))
def test_what_is_written_reads_the_same(tree):
    assert typed(plain(read(write(tree)))) == typed(tree)

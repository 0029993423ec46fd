import subprocess
import sys

from p2psim.core.distributions import Distribution
from p2psim.core.faults import Schemas
from p2psim.core.options import Options
from p2psim.scenario.model import Scenario
from p2psim.scenario.schema import (
    CatalogueEntry,
    SectionInfo,
    catalogue,
    matching,
    meanings_of_choices,
    page,
    parts,
)
from p2psim.scenario.sweep import METHODS, MOST_CELLS, RANGES


def test_the_page_is_up_to_date():
    # In a process of its own: tests register parts that do not ship.
    code = "from p2psim.scenario.schema import page, reference as r; assert page().read_text(encoding='utf-8') == r()"
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert not done.returncode, "run python -m p2psim.scenario.schema"


def test_what_stands_above_the_tables_names_ranges_and_limits():
    above = page().read_text(encoding="utf-8").partition("## The file")[0]
    assert all(f"`{name}`" in above for name in (*RANGES, "choice"))
    assert all(name in above for name in (*METHODS, *Distribution.model_fields))
    assert f"{MOST_CELLS:,} cells must be confirmed" in above


def test_every_key_is_explained():
    schemas = Schemas(Scenario)
    for part in parts(schemas):
        assert part.meaning.endswith("."), (part.key, part.kind)
        for key, field in part.schema["cls"].model_fields.items():
            assert key == "kind" or field.description, (part.key, part.kind, key)


def test_the_catalogue_names_what_a_scenario_can():
    found = {(entry.key, entry.name) for entry in catalogue()}
    assert {
        ("network.topology", "star"),
        ("network.exchange", "poll"),
        ("network.exchange.busy", "queue"),
        ("data.source", "lending"),
        ("data.partition", "contiguous"),
        ("data.scale.x.at", "each-record"),
        ("learning.algorithm", "async-star"),
        ("learning.loss", "hinge"),
        ("privacy.mechanism", "laplace"),
        ("privacy.allocation", "cap"),
        ("privacy.accountant", "basic"),
        ("record.metrics", "relative_fitness"),
        ("independent", "noise"),
    } <= found


def test_the_catalogue_says_what_each_name_means():
    found = {(entry.key, entry.name): entry.meaning for entry in catalogue()}
    assert [named for named, meaning in found.items() if not meaning] == []
    # Nothing is explained that cannot be named, and what is explained is told.
    explained = [meanings_of_choices(part) for part in parts(Schemas(Scenario))]
    assert sum(map(len, explained)) > 50
    for choices in explained:
        assert choices.items() <= found.items()


def test_a_class_explains_its_choices_and_inherits_explanations():
    class Part(Options):
        """What it is.

        Choices
        -------
        mode: fast
            at once, whatever
            it costs
        mode: slow
            later

        Notes
        -----
        mode: none
            no choice
        """

    class Derived(Part):
        """What it is."""

    expected = {("a.b.mode", "fast"): "at once, whatever it costs", ("a.b.mode", "slow"): "later"}
    for model in (Part, Derived):
        assert meanings_of_choices(SectionInfo("a.b", "part", "", {"cls": model})) == expected


def test_names_of_one_key_have_meanings_of_their_own_in_plain_text():
    seen = {}
    for entry in catalogue():
        assert "`" not in entry.meaning
        # A name may stand for two parts of one key, as of the two linear sources; two names may not share a meaning.
        assert seen.setdefault((entry.key, entry.meaning), entry.name) == entry.name, entry


def test_a_word_finds_names_then_keys_then_whole_words_of_meanings():
    entries = [
        CatalogueEntry("privacy.allocation", "horizon", "ε/T, unlike a cap: a worst case."),
        CatalogueEntry("network.channel.capture", "none", "Nothing."),
        CatalogueEntry("a.b", "handicap", "Something else."),
        CatalogueEntry("privacy.allocation", "cap", "ε/m for each."),
        CatalogueEntry("network", "x", "Escaping, capable, recap."),
        CatalogueEntry("(scenario)", "three_banks", "A question."),
    ]
    assert [one.name for one in matching(entries, "CAP")] == ["handicap", "cap", "none", "horizon"]
    assert matching(entries, "") == entries
    assert [one.name for one in matching(entries, "three-banks")] == ["three_banks"]
    assert matching(entries, "(scenario") == entries[-1:]
    assert matching(entries, "xyzzy") == []

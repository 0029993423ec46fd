import pytest
from language import VALID, messages

from p2psim.core.errors import InputError
from p2psim.scenario.cells import cells
from p2psim.scenario.model import Scenario


def overridden(*overrides: str) -> Scenario:
    return Scenario.parse(VALID, "s.yaml", overrides)


def test_values_are_yaml_under_dotted_keys():
    made = overridden(
        "seed=9",
        "replicas=4",
        "name=other",
        "learning.algorithm.rho=1e-1",
        "network.availability.kind=always",
        "network.exchange=request",
        "data.features.1.components=2",
        "data.partition=null",
        "record={metrics: [isolated_fitness], every: 5}",
        "privacy.accountant=[basic]",
    )
    assert (made.seed, made.replicas, made.name) == (9, 4, "other")
    assert made.learning.algorithm.rho == 0.1
    assert made.network.exchange.busy == "refuse"
    assert made.data.features[1].components == 2
    assert (made.record.metrics, made.record.every) == (["isolated_fitness"], 5)


def test_a_bare_name_becomes_a_part():
    short = VALID.replace("{kind: squared}", "squared")
    assert Scenario.parse(short, overrides=["learning.loss.intercept=true"]).learning.loss.intercept is True


def test_later_ones_win():
    assert overridden("seed=1", "seed=2").seed == 2


def test_the_sweep_can_be_replaced():
    made = overridden("sweep.privacy.epsilon=[1, 2, 3]")
    assert [cell.swept for cell in cells(made)] == [{"privacy.epsilon": e} for e in (1.0, 2.0, 3.0)]
    assert overridden("sweep={}", "privacy.epsilon=5").privacy.epsilon == 5
    made = overridden("sweep.zip.seed=[1, 2]", "sweep.zip.data.seed=[3, 4]", "sweep.privacy.epsilon=[1]")
    assert [tuple(cell.swept.values()) for cell in cells(made)] == [(1, 1, 3), (1, 2, 4)]


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (
            "learning.foo=1",
            "--set learning.foo: unknown key; known: algorithm, model, loss, regularizer, baselines",
        ),
        (
            "learning.algorithm.horizn=1",
            "--set learning.algorithm.horizn: unknown key; did you mean horizon?",
        ),
        ("learnin.foo.bar=1", "--set learnin.foo.bar: learnin: unknown key; did you mean learning?"),
        ("replicas=0", "--set replicas: must be a whole number of at least 1, got 0"),
        ("seed=1.5", "--set seed: must be a whole number, got 1.5"),
        (
            "learning.algorithm.theta_max=-1",
            "--set learning.algorithm.theta_max: must be a positive number, got -1",
        ),
        (
            "network.channel={loss: 2}",
            "--set network.channel: network.channel.loss: must be a number from 0 to 1, got 2",
        ),
        ("seed", "--set: must be KEY=VALUE with a dotted key, got 'seed'"),
        ("=1", "--set: must be KEY=VALUE with a dotted key, got '=1'"),
        ("a..b=1", "--set: must be KEY=VALUE with a dotted key, got 'a..b=1'"),
        (
            "seed=[1",
            "--set seed: is not YAML: while parsing a flow sequence, expected ',' or ']', but got '<stream end>'",
        ),
        ("seed.x=1", "--set seed.x: 'x' cannot be set inside 5, which is not a mapping"),
        (
            "data.features.5=whiten",
            "--set data.features.5: '5' is no position in a list of 2, counted from 0",
        ),
        (
            "sweep.privacy.epsilon=[x]",
            "--set sweep.privacy.epsilon: must be ",
        ),
    ],
)
def test_a_wrong_override_is_named(override, said):
    (found,) = messages(VALID, overrides=[override])
    assert found == said or (said.endswith(" be ") and found.startswith(said))


def test_an_override_that_no_cell_would_use_is_refused():
    for key in ("privacy.epsilon=5", "privacy.epsilon.0=5"):
        (message,) = messages(VALID, overrides=[key])
        assert message.startswith(f"--set {key[:-2]}: is swept")


def test_all_wrong_ones_at_once():
    found = messages(VALID.replace("seed: 5", "seed: x"), overrides=["learning.foo=1", "replicas=-1"])
    assert [message.split(": ")[0] for message in found] == [
        "--set learning.foo",
        "--set replicas",
        "s.yaml:2:7",
    ]


def test_a_path_that_is_set_anew_is_of_another_file(tmp_path):
    """A resolved scenario holds hashes of its files; that of a path that --set gives anew goes away, its own stays."""
    for name, size in (("a", 3), ("b", 4)):
        links = "".join(f"{i} {i + 1}\n" for i in range(size - 1))
        (tmp_path / f"{name}.csv").write_text(links)
        (tmp_path / f"{name}.txt").write_text("".join(f"{i + 1}.5\n" for i in range(size)))
    (tmp_path / "s.yaml").write_text(
        "name: s\n"
        "network:\n"
        "  topology: {kind: file, path: a.csv, format: edge-list}\n"
        "  exchange: broadcast\n"
        "  channel: {latency: {empirical: {path: a.txt}}}\n"
        "data: {source: {kind: linear-regression, points: 12, dimension: 2}}\n"
        "learning:\n"
        "  algorithm: {kind: coordinate-descent, mu: 1.0, updates_per_agent: 5}\n"
        "  loss: squared\n"
        "  regularizer: {l2: 0.1}\n"
        "privacy: {mechanism: none}\n"
    )
    resolved = tmp_path / "resolved.yaml"
    resolved.write_text(Scenario.load(tmp_path / "s.yaml").to_yaml())
    for key, file in (("network.topology", "b.csv"), ("network.channel.latency.empirical", "b.txt")):
        set_path = f"{key}.path={tmp_path / file}"
        now, before = Scenario.load(resolved, [set_path]), Scenario.load(resolved)
        assert now.to_yaml() != before.to_yaml()
        assert now.to_yaml() == Scenario.load(tmp_path / "s.yaml", [set_path]).to_yaml()
        with pytest.raises(InputError, match="is not the same file as before"):
            Scenario.load(resolved, [f"{key}.sha256={'f' * 64}", set_path])

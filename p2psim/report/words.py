"""Words of figures: names and values of swept keys, metrics with their units, numbers as people write them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from p2psim.scenario.record import label_of

#: Names that have a letter of their own.
LETTERS: Mapping[str, str] = {
    "epsilon": "ε",
    "delta": "δ",
    "rho": "ρ",
    "mu": "μ",
    "theta_max": "Θ",
    "sigma": "σ",
    "lambda": "λ",
    "gamma": "γ",
    "alpha": "α",
    "beta": "β",
    "l2": "λ",
    "relative_fitness": "ψ",
    "lambda2": "λ₂",
}

#: Metrics by what is better; of others nothing is said.
LOWER = (
    *("relative_fitness", "isolated_fitness", "objective", "objective_gap", "mean_objective", "test_loss"),
    *("mean_objective_gap", "test_rmse", "mean_model_rmse", "consensus_distance", "loss_rate", "staleness"),
    *("collision_rate", "offline_rate", "unsent_rate", "releases_wasted"),
)
HIGHER = (
    "test_accuracy",
    "local_accuracy",
    "mean_model_accuracy",
    "worst_decile_accuracy",
    "delivery",
    "throughput",
)

#: Shares between 0 and 1 whose labels do not say so.
FRACTIONS = (
    *("delivery", "loss_rate", "offline_rate", "unsent_rate", "participation", "present", "turned_away"),
    *("utilisation", "releases_wasted", "links_heard", "updates_gini"),
)

SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def number(value: float) -> str:
    """Write a number in few characters: ``0.1``, ``1,000``, ``5·10⁻⁶``, ``∞``."""
    if np.isnan(value):
        return "undefined"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == np.round(value) and 1000 <= abs(value) < 1e9:
        return f"{value:,.0f}".replace("-", "−")
    digits, _, power = f"{value:g}".partition("e")
    if power:
        raised = f"10{str(int(power)).translate(SUPERSCRIPTS)}"
        digits = raised if digits == "1" else f"{digits}·{raised}"
    return digits.replace("-", "−")


def as_text(value: Any) -> str:
    """A swept value in few characters."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | float | np.number):
        return number(float(value))
    # A column in which some values are no numbers holds text.
    plain = _plain(str(value))
    known = {"null": "none", "true": "yes", "false": "no"}
    return number(plain) if isinstance(plain, float) else known.get(str(value), str(value))


def short(key: str) -> str:
    """Last words of a dotted key, as people say them: a budget is ε, ``epsilon.0`` the ε of agent 0."""
    *_, before, last = ["", "", *key.split(".")]
    if last == "kind" and before:
        last = before
    if last.isdecimal():
        return f"{LETTERS.get(before, before.replace('_', ' '))} of agent {last}"
    return LETTERS.get(last, last.replace("_", " "))


def names_of(keys: Sequence[str]) -> list[str]:
    """Words of keys, longer where two would have the same."""
    words = [short(key) for key in keys]
    longer = [" ".join(key.split(".")[-2:]).replace("_", " ") for key in keys]
    return [longer[i] if words.count(word) > 1 else word for i, word in enumerate(words)]


def named(name: str, text: str) -> str:
    """What a legend says of a swept number; an infinite ε is no noise."""
    return "no noise" if text == "∞" and name == "ε" else f"{name} = {text}"


def distinct(texts: Sequence[str]) -> list[str]:
    """Words of values of one key: what all parts of a kind have in common is left out, and so are names of kinds.

    ``cap(releases=3)`` beside ``cap(releases=4)`` is "cap, releases 3"; beside other kinds it is "cap".
    """
    split = [_split(text) for text in texts]
    out = []
    for kind, keys in split:
        alike = [other for name, other in split if name == kind]
        left = [key for key in keys if any(key not in other for other in alike)]
        words = [_setting(key) for key in left]
        if not kind:  # a mapping: what differs says enough
            out.append(", ".join(words or map(_setting, keys)) or "defaults")
        else:
            out.append(", ".join([kind.replace("-", " ") if keys or kind.isidentifier() else kind, *words]))
    return out


def _setting(text: str) -> str:
    key, equals, value = text.partition("=")
    if not equals:
        return text
    value = value.strip()
    if key.strip().isdecimal():
        return f"agent {key.strip()}: {as_text(_plain(value))}"
    if value[:1] in "{[" or "(" in value:
        value = ", ".join(_setting(part) for part in _split(value)[1]) or value.strip("{}[]")
        return f"{short(key.strip())} {value}"
    plain = _plain(value)
    if isinstance(plain, float):
        return f"{short(key.strip())} {number(plain)}"
    said = as_text(value).replace("-", " ")
    return f"{short(key.strip())} {said}" if value in ("true", "false", "null", "none") else said


def _plain(value: str) -> Any:
    try:
        return float(value)
    except ValueError:
        return value


def _split(text: str) -> tuple[str, list[str]]:
    """Kind and keys of a part as it is displayed; other text has no keys."""
    match = re.fullmatch(r"([\w-]*)[({](.*)[)}]", text)
    if match is None:
        return text, []
    keys, depth, start = [], 0, 0
    inside = match[2]
    for i, letter in enumerate(inside):
        depth += (letter in "({[") - (letter in ")}]")
        if letter == "," and not depth:
            keys.append(inside[start:i].strip())
            start = i + 1
    return match[1], [*keys, inside[start:].strip()]


def numbers_of(values: Sequence[Any]) -> np.ndarray | None:
    """Values as numbers, where all are."""
    if any(isinstance(value, bool | np.bool_) for value in values):
        return None
    try:
        numbers = np.array([float(value) for value in values])
    except (TypeError, ValueError):
        return None
    return None if np.isnan(numbers).any() else numbers


def labels_of_values(
    values: Sequence[Any], name: str, given: Mapping[str, str] | None = None
) -> tuple[list[str], list[str]]:
    """Values of a key in words, as they stand under its name, and as they stand alone: ``ε = 10``.

    Parameters
    ----------
    values : sequence
    name : str
        Of the key.
    given : mapping, optional
        Words of values, by `as_text`.
    """
    given = given or {}
    plain = [as_text(value) for value in values]
    said = distinct(plain)
    if len(set(said)) < len(set(plain)):
        said = plain
    texts = [given.get(text) or word for text, word in zip(plain, said, strict=True)]
    bare = [numbers_of([value]) is None for value in values]
    labels = [
        text
        if text in given.values() or (is_word and text not in ("yes", "no", "none"))
        else named(name, text)
        for text, is_word in zip(texts, bare, strict=True)
    ]
    return [
        "no noise" if label == "no noise" else text for text, label in zip(texts, labels, strict=True)
    ], labels


def words(metric: str) -> str:
    """A metric's name as words of a title."""
    return metric.replace("_", " ")


def metric_label(metric: str) -> str:
    """Label of a metric's axis: its name, its unit, and which direction is better."""
    name = metric.partition("[")[0]
    better = ", lower is better" if name in LOWER else ", higher is better" if name in HIGHER else ""
    return f"{label_of(metric)}{' (fraction)' if name in FRACTIONS else ''}{better}"


def is_fraction(metric: str) -> bool:
    """Whether a metric lies between 0 and 1, so that its axis is linear."""
    name = metric.partition("[")[0]
    return name in FRACTIONS or name in HIGHER or "(fraction" in label_of(name)


def key_label(key: str, name: str) -> str:
    """Label of the axis of a swept key."""
    special = {
        "network.topology.agents": "owners N (number)",
        "privacy.epsilon": "privacy budget ε per owner",
        "network.channel.airtime": "airtime of a message (clock periods)",
        "network.channel.loss": "share of messages lost",
    }
    return special.get(key, name) if name == short(key) else name

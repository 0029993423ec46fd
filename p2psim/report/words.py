"""Words of figures: names and values of swept keys, metrics with their units, numbers as people write them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from p2psim.network.metrics import NETWORK_METRICS
from p2psim.scenario.figure import given_words
from p2psim.scenario.record import SPENDING, label_of

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
    "local_loss",
    *("mean_objective_gap", "test_rmse", "mean_model_rmse", "consensus_distance", "loss_rate", "staleness"),
    *("worst_decile_rmse", "collision_rate", "offline_rate", "unsent_rate", "releases_wasted"),
)
HIGHER = (
    "test_accuracy",
    "local_accuracy",
    "mean_model_accuracy",
    "mean_model_local_accuracy",
    "worst_decile_accuracy",
    "delivery",
    "throughput",
)

#: Shares between 0 and 1 whose labels do not say so.
FRACTIONS = (
    *("delivery", "loss_rate", "offline_rate", "unsent_rate", "present", "turned_away"),
    *("utilisation", "releases_wasted", "links_heard", "updates_gini"),
)

#: Units of metrics whose labels do not say them.
UNITS: Mapping[str, str] = {
    **dict.fromkeys(FRACTIONS, " (fraction)"),
    "participation": " (wakes over expected ticks)",
}

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


def visible(text: str) -> str:
    """Text with escapes in the place of control characters, which no font draws and no SVG file may hold."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def as_text(value: Any) -> str:
    """A swept value in few characters."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | float | np.number):
        return number(float(value))
    # A column in which some values are no numbers holds text.
    plain = _plain(str(value))
    known = {"null": "none", "true": "yes", "false": "no"}
    return number(plain) if isinstance(plain, float) else known.get(str(value), visible(str(value)))


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
        words = _settings([key for key in keys if any(key not in other for other in alike)])
        if not kind:  # a mapping: what differs says enough
            out.append(", ".join(words or _settings(keys)) or "defaults")
        else:
            out.append(", ".join([kind.replace("-", " ") if keys or kind.isidentifier() else kind, *words]))
    return out


def _settings(texts: Sequence[str]) -> list[str]:
    """Keys and their values in words; agents of one value are said together: ``agents 0–4: 2``."""
    agents: dict[str, list[int]] = {}
    for text in texts:
        key, _, value = text.partition("=")
        if key.strip().isdecimal():
            agents.setdefault(as_text(_plain(value.strip())), []).append(int(key))
    spans = {
        value: f"{who[0]}–{who[-1]}"
        if len(who) > 2 and who == list(range(who[0], who[-1] + 1))
        else ", ".join(map(str, who))
        for value, who in agents.items()
    }
    of_agents = [f"agent{'s' * (len(who) > 1)} {spans[value]}: {value}" for value, who in agents.items()]
    return of_agents + [_setting(text) for text in texts if not text.partition("=")[0].strip().isdecimal()]


def _setting(text: str) -> str:
    key, equals, value = text.partition("=")
    if not equals:
        return text
    value = value.strip()
    if value[:1] in "{[" or "(" in value:
        value = ", ".join(_settings(_split(value)[1])) or value.strip("{}[]")
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
    brief = distinct(plain)
    said = plain if len(set(brief)) < len(set(plain)) else brief
    texts = [given.get(text) or word for text, word in zip(plain, said, strict=True)]
    bare = [numbers_of([value]) is None for value in values]
    labels = [
        text
        if text in given.values() or (is_word and text not in ("yes", "no", "none"))
        else named(name, text)
        for text, is_word in zip(texts, bare, strict=True)
    ]
    shown = ["no noise" if label == "no noise" else text for text, label in zip(texts, labels, strict=True)]
    return shown, labels


def words_of_cells(
    cells: Sequence[Mapping[str, Any]], known: Mapping[str, Mapping[str, str]], tree: Mapping[str, Any]
) -> tuple[list[str], dict[str, str], dict[str, dict[Any, str]]]:
    """What tells each cell from the others, names of swept keys, and words of their values, by key and value.

    Parameters
    ----------
    cells : sequence of mapping
        Swept values, as in tables.
    known : mapping
        Labels of parts by key and value.
    tree : mapping
        A scenario with ``labels`` and ``sweep``.
    """
    import pandas as pd

    keys, table = list(cells[0]), pd.DataFrame(list(cells))
    named_so, given = given_words(tree, table)
    names = {key: named_so.get(key, name) for key, name in zip(keys, names_of(keys), strict=True)}
    values: dict[str, dict[Any, str]] = {}
    labels: dict[str, list[str]] = {}
    for key in keys:
        column, parts, own = [cell[key] for cell in cells], known.get(key, {}), given.get(key, {})
        shown = [parts.get(value, value) if isinstance(value, str) else value for value in column]
        said = {as_text(one): own[value] for one, value in zip(shown, column, strict=True) if value in own}
        texts, labels[key] = labels_of_values(shown, names[key], said)
        values[key] = dict(zip(column, texts, strict=True))
    shown_labels = [labels[key] for key in keys if len({repr(cell[key]) for cell in cells}) > 1]
    if "zip" in given:
        together = [key for key in keys if key in tree["sweep"]["zip"]]
        rows = table[together].astype(str).agg("|".join, axis=1)
        others = [key for key in keys if key not in together and len({repr(cell[key]) for cell in cells}) > 1]
        shown_labels = [[given["zip"][row] for row in rows], *(labels[key] for key in others)]
    texts = [", ".join(parts) for parts in zip(*shown_labels, strict=True)]
    return texts if shown_labels else [""] * len(cells), names, values


def words(metric: str) -> str:
    """A metric's name as words of a title."""
    return visible(metric.replace("_", " "))


def by_worth(metrics: Iterable[str]) -> list[str]:
    """Names of metrics: those of models, the best known first; then those of the network; ε that was spent last."""
    known = (LOWER[0], *HIGHER, *LOWER)

    def place(name: str) -> tuple[int, int, str]:
        base = re.split(r"[\[ ]", name)[0]
        group = 2 if base in SPENDING else int(base in NETWORK_METRICS)
        return group, known.index(base) if base in known else len(known), name

    return sorted(map(str, metrics), key=place)


def metric_label(metric: str) -> str:
    """Label of a metric's axis: its name, its unit, and which direction is better."""
    name = metric.partition("[")[0]
    better = ", lower is better" if name in LOWER else ", higher is better" if name in HIGHER else ""
    return f"{visible(label_of(metric))}{UNITS.get(name, '')}{better}"


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

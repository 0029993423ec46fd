"""What must be said under a figure: flags of the ledger, and what could not be drawn as it is."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from p2psim.report.curves import MetricCurve
from p2psim.report.source import Source
from p2psim.runs.summary import raised_flags
from p2psim.scenario import notices

FLAGS: Mapping[str, str] = {
    "not_private": "Not private: the mechanism as run guarantees nothing",
    "bound_violated": "Bound violated: gradients exceeded the declared sensitivity; ε as claimed is not met",
    "over_budget": "Over budget: an agent spent more than its budget",
    "scaled_records": "Scaled (scale_records): noise as if each record stood for {scale}",
    "public_graph_assumed": "The graph is assumed to be public (public_graph_assumed)",
    "data_dependent_step": "The step size was chosen from private data (data_dependent_step)",
    "clairvoyant": "Clairvoyant: the allocation knows the wakes that will happen",
}

#: Warnings of a run that are repeated under a figure.
MOST_WARNINGS = 3


def run_notes(source: Source) -> list[str]:
    """Notes on the run as a whole, the same under all of its figures."""
    out = []
    flags = raised_flags(source.ledger)
    for flag in filter(flags.any().get, FLAGS):
        raised, cells = source.ledger.loc[flags[flag], "cell"].nunique(), source.ledger["cell"].nunique()
        some = "" if raised == cells else f" (in {raised} of {cells} cells)"
        out.append(FLAGS[flag].format(scale=_scale(source)) + some + ".")
    # What is wrong with the printed forms of other algorithms concerns their steps, not what they minimise.
    of_star = source.says("learning.algorithm.kind") == "async-star"
    wrong = ", which minimises another objective" if of_star else ""
    if "learning.algorithm.form" in source.swept:
        out.append(f"Form printed is the update as the paper prints it{wrong}.")
    elif source.says("learning.algorithm.form") == "printed":
        out.append(f"Form printed: the update as the paper prints it{wrong}.")
    telling = warnings(source.warnings)
    more = len(telling) - MOST_WARNINGS
    out += telling[:MOST_WARNINGS]
    return [*out, f"{more} more such warnings: see manifest.json."] if more > 0 else out


def warnings(texts: Iterable[str]) -> list[str]:
    """Those of the warnings of a run that say that ψ must not be taken at face value."""
    return [f"Warning: {text}." for text in texts if "ψ" in text or "stability" in text]


def _scale(source: Source) -> str:
    if "privacy.scale_records" in source.swept:
        values = sorted(source.metrics["privacy.scale_records"].unique())
        return " or ".join(f"{value:g}" for value in values)
    value = source.says("privacy.scale_records")
    return "several" if value is None else f"{value:g}"


def curve_notes(drawn: Sequence[MetricCurve], log: bool, source: Source) -> list[str]:
    """Notes on curves: what line and band are, and replicas or values that cannot be seen in them."""
    agents = max(c.agents for c in drawn)
    held_by = replicas([c.replicas for c in drawn])
    out = [f"Line: median; band: {source.band_words} of {held_by}.{means_note(agents)}"]
    bad = [(c.label, c.not_finite, c.replicas) for c in drawn if c.not_finite]
    if bad:
        each = [f"{count} of {total} replicas{of(label)}" for label, count, total in bad]
        out.append(
            f"Infinite or undefined values, counted as +∞, in {', '.join(each)}; "
            "nothing is drawn where they decide."
        )
    held = sum(c.held for c in drawn)
    if source.against == "epsilon":
        out.append("A replica ends where it spends no more, with all that it learned since without spending.")
    elif held and source.against == "time":
        out.append("After its last record a replica keeps its last value.")
    elif held:
        of_all = f"Of {sum(c.replicas for c in drawn)} replicas of all lines, {held}"
        out.append(f"{of_all} end before the others and are held at their last value.")
    if log:
        out += hidden_note([v for c in drawn for v in (c.low, c.median, c.high)])
    return out


def comparability(metrics: Sequence[str], source: Source) -> list[str]:
    """Notes on metrics that cannot be compared between the graphs of a sweep."""
    return [
        f"{note[0].upper()}{note[1:]}."
        for note in notices.comparability(metrics, source.swept, source.scenario)
    ]


def means_note(agents: int) -> str:
    """Say that values are means over agents, where there are several."""
    return f" Values are means over {agents} agents." if agents > 1 else ""


def hidden_note(drawn: Sequence[ArrayLike]) -> list[str]:
    """Say how many of the drawn values a log axis cannot show."""
    values = np.concatenate([np.ravel(np.asarray(v, dtype=float)) for v in drawn])
    hidden = int(np.sum(values <= 0))
    if not hidden:
        return []
    return [f"{hidden} of {len(values)} quartiles are zero or negative and cannot be shown on the log axis."]


def of(label: str) -> str:
    """A label in brackets, after what it is the label of; nothing where there is none."""
    return f" ({label})" if label else ""


def replicas(counts: Sequence[int]) -> str:
    """``1 replica``, or ``18 to 20 replicas`` where counts differ."""
    number = between(counts)
    return f"{number} replica{'' if number == '1' else 's'}"


def between(counts: Sequence[int]) -> str:
    """``20``, or ``18 to 20`` where counts differ."""
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"

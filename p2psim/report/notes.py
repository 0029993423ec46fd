"""What stands under a figure, n and the band; and the badge of a run whose ε is not what it claims."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from p2psim.report.source import Source
from p2psim.runs.manifest import PRINTED
from p2psim.runs.summary import raised_flags

#: Fewer replicas than this are drawn one by one: quartiles of so few say little.
FEW = 8


#: What makes ε void or that of something else, and is said on every figure: a flag, its badge, how bad it is.
VOID = (
    ("not_private", "NOT PRIVATE", "bad"),
    ("bound_violated", "ε VOID", "bad"),
    ("over_budget", "OVER BUDGET", "bad"),
    ("scaled_records", "SCALED RECORDS", "warn"),
    ("printed", "FORM AS PRINTED", "warn"),
)


def raised(ledger: pd.DataFrame, result: Any) -> pd.DataFrame:
    """Which flags each row of a ledger raises, and whether its cell takes a form as its paper prints it."""
    cells = getattr(getattr(result, "described", None), "cells", ())
    printed = {number for number, cell in enumerate(cells) if PRINTED in cell.notes}
    return raised_flags(ledger).assign(printed=ledger["cell"].isin(printed))


def badge(source: Source) -> str:
    """What a reader must not miss, in capitals; empty where there is nothing.

    A run that claims no privacy, without noise and with no finite budget anywhere, needs no warning, and a form that is
    swept is said beside its line.
    """
    flags = raised(source.ledger, source.result)
    claimed = source.says("privacy.mechanism.kind") not in (None, "none")
    if "budget" in source.ledger:
        claimed |= bool(np.isfinite(source.ledger["budget"].to_numpy(dtype=float, na_value=np.inf)).any())
    texts = []
    for flag, text, _ in VOID:
        if flag not in flags or not flags[flag].any() or (flag == "not_private" and not claimed):
            continue
        rows = flags[flag]
        if flag == "printed" and not rows.all():
            continue
        if flag == "not_private" and "budget" in source.ledger:
            # That ε = ∞ buys no privacy stands beside the line itself.
            finite = np.isfinite(source.ledger["budget"].to_numpy(dtype=float, na_value=np.inf))
            rows = rows & finite if finite.any() else rows
        cells, of = source.ledger.loc[rows, "cell"].nunique(), source.ledger["cell"].nunique()
        if cells:
            texts.append(text if cells == of else f"{text}: {cells} of {of} cells")
    return "; ".join(texts)


def spread(
    source: Source,
    counts: Sequence[int],
    shape: str = "band",
    agents: int = 1,
    cut: bool = False,
    of: str = "median",
) -> str:
    """How many replicas there are, and what line and band show of them."""
    mean = f" (each the mean over {agents} agents)" if agents > 1 else ""
    line = {"band": "line", "bar": "point"}[shape]
    if max(counts) == 1:
        text = f"n = 1 replica{mean}"
    elif are_few(counts):
        text = f"n = {replicas(counts)}{mean}, each drawn; {line}: {of}"
    else:
        text = f"n = {replicas(counts)}{mean}; {line}: {of}, {shape}: {source.band_words}"
    return f"{text}; a line ends where half of its replicas have ended." if cut else f"{text}."


def means(count: int, what: str = "mean") -> str:
    """How many replicas there are, and what `p2psim.report.panels.draw_means` shows of them."""
    rest = f", each drawn; point: {what}" if count < FEW else f"; point: {what}, bar: 95 % (Student's t)"
    return f"n = {replicas([count])}{rest if count > 1 else ''}."


def alike(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Say which lines are not drawn since others are the same."""
    same = "; ".join(f"{a} and {b}" for a, b in pairs)
    return [f"Drawn once, since they are the same: {same}."] if pairs else []


def of(label: str) -> str:
    """A label in brackets, after what it is the label of; nothing where there is none."""
    return f" ({label})" if label else ""


def are_few(counts: Iterable[int]) -> bool:
    """Whether each replica is drawn, and no band: somewhere there are a few, but not none."""
    return min((count for count in counts if count), default=0) < FEW


def replicas(counts: Sequence[int]) -> str:
    """``1 replica``, or ``18 to 20 replicas`` where counts differ."""
    return counted(counts, "replica")


def counted(counts: Sequence[int], what: str) -> str:
    """How many of something there are, in words."""
    number = between(counts)
    return f"{number} {what}{'' if number == '1' else 's'}"


def between(counts: Sequence[int]) -> str:
    """``20``, or ``18 to 20`` where counts differ."""
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"


def not_drawn(values: np.ndarray, log: bool) -> list[str]:
    """How many last values are not finite, or have no place on a log axis."""
    found = {
        "are infinite and count as +∞": np.isinf(values),
        "are undefined and are left out": np.isnan(values),
    }
    if log:
        hidden = np.isfinite(values) & (values <= 0)
        found["are zero or negative and have no place on the log axis"] = hidden
    parts = [f"{which.sum()} of {values.size} values {what}" for what, which in found.items() if which.any()]
    return [f"{'; '.join(parts)}."] if parts else []

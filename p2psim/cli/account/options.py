"""What the actions of ``p2psim account`` share: numbers, arguments, lists of releases, and accountants by name.

A list of releases is written ``0.1x50,gaussian:0.5x10,laplace:1@0.01x100``.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from p2psim.cli.arguments import Option, number, one_of, option
from p2psim.core.errors import InputError
from p2psim.core.printing import exact
from p2psim.core.text_tables import BeyondFloatError, decimal

if TYPE_CHECKING:
    import numpy as np

    from p2psim.privacy.accounting.accountant import Accountant
    from p2psim.privacy.accounting.charges import Charges
    from p2psim.privacy.accounting.noises import Noise

#: Most releases that a list may have.
MOST = 10_000_000

#: Different noises and rates that `Charges.kind` can tell apart.
MOST_KINDS = 127

#: Noises of a list.
NOISES = ("laplace", "gaussian", "discrete-laplace", "pure", "poisson-gaussian")

_ENTRY = re.compile(
    r"(?:(?P<noise>[a-z-]+):)?(?P<number>[^@x:]+)(?:@(?P<rate>[^@x:]+))?(?:x(?P<count>[^@x:]+))?"
)


#: Releases that are alike: the noise, the share of the records that each samples (None for all of them), the loss,
#: which is sensitivity by scale, and how many they are.
ReleaseEntry: TypeAlias = tuple[str, float | None, float, int]


def read_list(
    text: str, argument: str, noise: str, rate: float | None, sensitivity: float | None = None
) -> list[ReleaseEntry]:
    """Read a list of releases.

    Parameters
    ----------
    text : str
    argument : str
        The argument that it was given by, named in errors.
    noise, rate
        Of entries that do not name their own.
    sensitivity : float, optional
        When given, the numbers are scales of noise, and losses are this by them.

    Raises
    ------
    InputError
        Naming the entry, what is expected and what was given.
    """

    def entry(part: str) -> ReleaseEntry:
        match = _ENTRY.fullmatch(part)
        if match is None:
            message = f"{argument}: entries look like 0.1, 0.1x50 or gaussian:0.5@0.01x10, got {part!r}"
            raise InputError(message)
        name = match["noise"] or noise
        if name not in NOISES:
            raise InputError(f"{argument}: unknown noise {name!r} in {part!r}; known: {', '.join(NOISES)}")
        try:
            number = _number(match["number"])
            share = rate if match["rate"] is None else _number(match["rate"])
        except BeyondFloatError as error:
            raise InputError(f"{argument}: {error}") from None
        if not (math.isfinite(number) and number > 0):
            what = "loss" if sensitivity is None else "scale"
            raise InputError(f"{argument}: a {what} must be a positive number, got {match['number']!r}")
        if share is not None and not 0 < share <= 1:
            raise InputError(f"{argument}: a sampling rate must be above 0 and at most 1, got {exact(share)}")
        count = match["count"] or "1"
        if not (count.isdecimal() and int(count) >= 1):
            raise InputError(f"{argument}: a count must be a whole number, at least 1, got {count!r}")
        loss = number if sensitivity is None else sensitivity / number
        if not (math.isfinite(loss) and loss > 0):
            raise InputError(
                f"{argument}: sensitivity divided by scale must be a positive number, got {exact(loss)} for {part!r}"
            )
        return name, None if share == 1 else share, loss, int(count)

    return [entry(part.strip()) for part in text.split(",")]


def _number(text: str) -> float:
    try:
        return decimal(text)
    except BeyondFloatError:
        raise
    except ValueError:
        return math.nan


def noise_of(name: str, rate: float | None) -> Noise:
    """Return the accountants' noise of that name, sampled at a rate if there is one.

    Samples are such that the account holds for any kind of batch; ``poisson-gaussian`` is for Poisson samples.
    """
    from p2psim.privacy.accounting import noises

    if name == "poisson-gaussian":
        return noises.sampled(noises.GAUSSIAN, 1.0 if rate is None else rate, poisson=True)
    named = (noises.LAPLACE, noises.GAUSSIAN, noises.DISCRETE_LAPLACE, noises.PURE)
    noise = next(noise for noise in named if noise.name == name)
    return noise if rate is None else noises.Subsampled(noise, rate)


def listed(entries: Sequence[ReleaseEntry], repeat: int = 1) -> Charges:
    """Write a list out, as often as wanted, as what one agent released.

    Raises
    ------
    InputError
        If there are more than `MOST` releases.
    """
    import numpy as np

    from p2psim.privacy.accounting.charges import Charges

    names, rates, losses, counts = zip(*entries, strict=True)
    total = repeat * sum(counts)
    if total > MOST:
        raise InputError(f"at most {MOST:,} releases can be listed, got {total:,}")
    each = list(zip(names, rates, strict=True))
    kinds = list(dict.fromkeys(each))
    if len(kinds) > MOST_KINDS:
        raise InputError(f"a list can name at most {MOST_KINDS} different noises and rates, got {len(kinds)}")
    places = np.array([kinds.index(kind) for kind in each], np.int8)
    kind, loss = (np.tile(np.repeat(values, counts), repeat) for values in (places, losses))
    return Charges(tuple(noise_of(*kind) for kind in kinds), kind, loss, np.array([0, total]))


@dataclass(frozen=True)
class EvaluationPoint:
    """Where accounts are drawn up: ε at a δ, or δ at an ε; the other is None.

    Attributes
    ----------
    delta, epsilon : float or None
    key, symbol : str
        Of what is told: in JSON, and in tables.
    fixed : str
        What is held fixed, in words.
    """

    delta: float | None
    epsilon: float | None
    key: str
    symbol: str
    fixed: str

    def sums(self, accountant: Accountant, charges: Charges, holders: int = 1) -> np.ndarray:
        """ε or δ of a record of each agent, shape (N,), where up to ``holders`` agents may hold it."""
        from p2psim.privacy.shares import of_shared_record

        if self.delta is not None:
            return of_shared_record(accountant.epsilon(charges, self.delta / holders), holders)
        assert self.epsilon is not None
        return of_shared_record(accountant.delta(charges, self.epsilon / holders), holders).clip(max=1.0)


def chosen(named: Sequence[str] | None, noises: Sequence[Noise]) -> tuple[dict[str, Accountant], list[str]]:
    """Accountants that were named, or all that support every noise; and in words which were left out.

    Raises
    ------
    InputError
        If one that was named is unknown, or does not support a noise; says which do.
    """
    from p2psim.core.registry import load_installed
    from p2psim.privacy.accounting.accountants import ACCOUNTANTS

    for name in named or ():
        if name not in ACCOUNTANTS and not (load_installed() and name in ACCOUNTANTS):
            # Here and not above: it imports the language of scenarios.
            from p2psim.core.faults import unknown

            raise InputError(f"--accountant: {unknown('accountant', name, list(ACCOUNTANTS))}")
    able = {name: one for name, one in ACCOUNTANTS.items() if all(map(one.supports, noises))}
    for name in named or ():
        if name not in able:
            lacking = next(noise.name for noise in noises if not ACCOUNTANTS[name].supports(noise))
            message = f"--accountant: {name} cannot account for {lacking} releases; {', '.join(able)} can"
            raise InputError(message)
    if named:
        return {name: able[name] for name in dict.fromkeys(named)}, []
    return able, [name for name in ACCOUNTANTS if name not in able]


def read_at(args: argparse.Namespace) -> EvaluationPoint:
    """Where accounts are to be drawn up."""
    if args.delta is not None:
        delta = share("--delta", args.delta, zero=True)
        return EvaluationPoint(delta, None, "epsilon", "ε", f"δ = {delta:g}")
    if not (math.isfinite(args.epsilon) and args.epsilon >= 0):
        raise InputError(f"--epsilon: must be a number, at least 0, got {exact(args.epsilon)}")
    return EvaluationPoint(None, args.epsilon, "delta", "δ", f"ε = {args.epsilon:g}")


#: Numbers that differ by less than this part of themselves are told as the same.
ROUNDING = 1e-12


def upward(value: float, digits: int = 7) -> str:
    """Write a number with so many significant digits, never smaller than it is, but for the rounding of its last bits.

    A loss that is rounded to the nearest would be told too small half of the time.
    """
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    text = f"{value:.{digits}g}"
    if float(text) < value - ROUNDING * abs(value):
        last = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
        text = f"{float(text) + last:.{digits}g}"
    return text


def downward(value: float, digits: int = 7) -> str:
    """Write a number with so many significant digits, never larger than it is."""
    text = upward(-value, digits)
    return text[1:] if text.startswith("-") else f"-{text}" if value else text


def positive(name: str, value: float) -> float:
    """Return a number that must be positive and finite.

    Raises
    ------
    InputError
        Naming the argument, what is expected and what was given.
    """
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name}: must be a positive number, got {exact(value)}")
    return value


def share(name: str, value: float, *, zero: bool = False) -> float:
    """Return a number that must lie between 0 and 1, 1 itself not, and 0 only if that is allowed."""
    if not (0 < value < 1 or (zero and value == 0)):
        message = f"{name}: must be {'at least' if zero else 'above'} 0 and below 1, got {exact(value)}"
        raise InputError(message)
    return value


def left_out_note(left_out: Sequence[str], noises: Sequence[Noise]) -> None:
    """Say which accountants were left out, if any were."""
    if left_out:
        names = ", ".join(dict.fromkeys(noise.name for noise in noises))
        print(f"left out: {', '.join(left_out)} (cannot account for all of: {names})")


def assumed(noises: Sequence[Noise]) -> list[str]:
    """What accounts of sampled releases assume, beside the sensitivity Δ to a replaced record."""
    return sorted({noise.assumes for noise in noises if hasattr(noise, "assumes")})


def assumed_note(noises: Sequence[Noise]) -> None:
    """Print what an account of sampled releases assumes."""
    for what in assumed(noises):
        print(f"assumed: {what}")


def check_rate(name: str, rate: float | None) -> None:
    """Refuse a sampling rate that is given and is not above 0 and at most 1.

    Raises
    ------
    InputError
        Naming the argument, what is expected and what was given.
    """
    if rate is not None and not 0 < rate <= 1:
        raise InputError(f"{name}: must be above 0 and at most 1, got {exact(rate)}")


#: The names of accountants.
ACCOUNTANT = option(
    "--accountant NAME",
    "an accountant; may be repeated; by default all that can handle the releases; p2psim list accountant shows them",
    action="append",
)

#: The noise and the sampling rate of releases.
NOISE = (
    option(
        "--noise",
        "of releases that do not name their own; pure: only ε₀ is known; poisson-gaussian: Poisson samples of records "
        "that add at most Δ/2 to a sum, as clipped gradients do; laplace by default",
        default="laplace",
        choices=NOISES,
    ),
    option("--rate Q", "share of the records that each release samples", number),
)


def at_point(default: str = "") -> Option:
    """Declare the δ or ε at which accounts are drawn up."""
    return one_of(
        option("--delta D", f"print ε at this δ{default}", number),
        option("--epsilon E", "print δ at this ε", number),
        required=not default,
    )

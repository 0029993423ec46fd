"""What floating-point numbers cannot compute: refused in one message, at the number that is furthest out."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from p2psim.core.errors import MeaningError, SimulationError
from p2psim.scenario.model import Scenario

Made = TypeVar("Made")

#: Sections whose numbers decide what is computed.
_SECTIONS = ("network", "data", "learning", "privacy")

#: Powers of ten from 1 within which a number is no reason for a solver to fail.
_USUAL = 4.0


def computed(
    scenario: Scenario, X: np.ndarray, y: np.ndarray, compute: Callable[[], Made], arrays: bool = False
) -> Made:
    """Compute something of a scenario and its records, unless numbers overflow or a solver fails.

    Parameters
    ----------
    scenario : Scenario
        Without a sweep.
    X : ndarray, shape (n, p)
    y : ndarray, shape (n,)
    compute : callable
    arrays : bool
        Whether it makes a mapping of arrays first, which must be finite.

    Returns
    -------
    object
        What `compute` makes.

    Raises
    ------
    MeaningError
        If it cannot be computed, by the key of the number that is furthest from 1, or ``data``. Errors that no such
        number explains pass.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        try:
            made = compute()
        except SimulationError as error:
            raise _refusal(scenario, X, y, error, f" ({error})") from None
        except (ArithmeticError, ValueError) as error:
            raise _refusal(scenario, X, y, error) from None
    for warning in caught:
        text = str(warning.message)
        is_numerical = issubclass(warning.category, RuntimeWarning) and " encountered in " in text
        if is_numerical and text.endswith("matmul"):
            continue  # some libraries say so of products that are right
        if is_numerical and _furthest(scenario, X, y)[0] > _USUAL:
            raise _refusal(scenario, X, y)
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if arrays and not all(np.isfinite(one).all() for one in _floats(made)):
        raise _refusal(scenario, X, y)
    return made


def _floats(made: Any) -> Iterator[np.ndarray]:
    return (one for name, one in made[0].items() if one.dtype.kind == "f" and name != "bounds")


def _refusal(
    scenario: Scenario, X: np.ndarray, y: np.ndarray, error: Exception | None = None, why: str = ""
) -> Exception:
    """What to raise: the error itself, where no number is so far out that it explains the error."""
    far, key, message = _furthest(scenario, X, y)
    return error if error is not None and far <= _USUAL else MeaningError(key, message + why)


def _furthest(scenario: Scenario, X: np.ndarray, y: np.ndarray) -> tuple[float, str, str]:
    """How many powers of ten the number furthest from 1 is away, its key, and the message."""
    far, key, value = max(
        ((abs(math.log10(value)), key, value) for key, value in _numbers(scenario)), default=(0.0, "", 1.0)
    )
    sizes = np.append(np.abs(X).max(axis=0, initial=0.0), np.abs(y).max(initial=0.0))
    sizes = sizes[sizes > 0]
    least, most = (float(sizes.min()), float(sizes.max())) if sizes.size else (1.0, 1.0)
    spread = max(abs(math.log10(least)), abs(math.log10(most)), math.log10(most) - math.log10(least))
    if key and (scenario.data.source.generated or far >= spread):
        size = "large" if value > 1 else "small"
        message = f"is {value:g}, which is too {size} to be computed with here; give a number nearer to 1"
        return far, key, message
    return (
        spread,
        "data",
        "what is minimised cannot be computed from these records in floating-point numbers: the largest values of "
        f"features and labels are between {least:.3g} and {most:.3g}; scale them to about 1, by data.scale or by "
        "data.features: [standardise]",
    )


def _numbers(scenario: Scenario) -> Iterator[tuple[str, float]]:
    """Positive finite numbers of a scenario that may have a fraction, by their keys."""

    def inside(key: str, value: Any) -> Iterator[tuple[str, float]]:
        if isinstance(value, Mapping):
            for name, entry in value.items():
                yield from inside(f"{key}.{name}", entry)
        elif isinstance(value, list | tuple):
            for i, entry in enumerate(value):
                yield from inside(f"{key}.{i}", entry)
        elif isinstance(value, float) and math.isfinite(value) and value > 0 and key != "privacy.delta":
            yield key, value

    for section in _SECTIONS:
        yield from inside(section, getattr(scenario, section).model_dump())

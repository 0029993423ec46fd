"""A mechanism of the user's own, from a module that the user has let in."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

import numpy as np
from pydantic import Field

from p2psim.errors import MeaningError
from p2psim.options import Options
from p2psim.parts import find_part

if TYPE_CHECKING:
    from p2psim.privacy.accounting.noises import Noise
    from p2psim.privacy.mechanisms.protocol import Noisy

_KEY = "privacy.mechanism.name"

#: What an object that is called must give: see `p2psim.privacy.mechanisms.protocol`.
_NEEDED = ("norm", "noise", "fill_unit")


class Registered(Options):
    """Noise of your own: what a function that you name returns.

    ``package.module:OBJECT`` is called with the options, in every worker. You must have let the module in: by
    ``--parts package.module``, by ``p2psim.load_parts`` in Python, or by installing a package that declares it. A
    scenario alone imports nothing. What the call returns has ``norm``
    ("l1" or "l2", of the sensitivity), ``noise`` (what accountants know of it: `p2psim.privacy.accounting.noises`),
    ``fill_unit`` (draws of scale one, at an address), and perhaps ``power`` (1), ``lattice`` (None),
    ``sensitivity_of``, ``of_scale`` and ``variance``; see `p2psim.privacy.mechanisms.protocol.Noisy`.
    """

    kind: Literal["registered"] = "registered"
    name: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")] = Field(
        description="package.module:OBJECT, a function or class of a module that you have let in"
    )
    options: dict[str, Any] = Field({}, description="what it is called with, by name")
    is_private: ClassVar[bool] = True
    adds_up: ClassVar[bool] = False

    @property
    def own(self) -> Noisy:
        """The object itself.

        Raises
        ------
        MeaningError
            If there is none of this name, its module has not been let in, it refuses the
            options, or it is no mechanism.
        """
        return _made(self.name, json.dumps(self.options, sort_keys=True))

    @property
    def norm(self) -> Literal["l1", "l2"]:
        """In which norm the sensitivity of a release is taken."""
        return self.own.norm

    @property
    def power(self) -> int:
        """Power of the losses that adds up, roughly: how a budget is spread."""
        return int(getattr(self.own, "power", 1))

    @property
    def lattice(self) -> float | None:
        """What noisy values are rounded to multiples of."""
        return getattr(self.own, "lattice", None)

    @property
    def noise(self) -> Noise:
        """What accountants know of it."""
        return self.own.noise

    def sensitivity_of(self, moved: np.ndarray, dimension: int) -> np.ndarray:
        """What values move by, unless the object says otherwise."""
        if not hasattr(self.own, "sensitivity_of"):
            return moved
        return np.asarray(self.own.sensitivity_of(moved, dimension))

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` (releases, p), row by row that of an agent's numbered release.

        Raises
        ------
        MeaningError
            If a draw is not a finite number.
        """
        self.own.fill_unit(key, agents, numbers, out)
        if not np.isfinite(out).all():
            raise MeaningError(_KEY, f"{self.name} drew noise that is not a finite number")

    def of_scale(self, unit: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """Noise of the given scales: that of scale one times them, unless the object says otherwise."""
        if not hasattr(self.own, "of_scale"):
            return unit * scales[:, None]
        return np.asarray(self.own.of_scale(unit, scales))

    def variance(self, scales: np.ndarray) -> np.ndarray:
        """What the object says, or NaN."""
        if not hasattr(self.own, "variance"):
            return np.full(np.shape(scales), np.nan)
        return np.asarray(self.own.variance(scales))


@lru_cache(maxsize=16)
def _made(name: str, options: str) -> Noisy:
    make = find_part(name, _KEY)
    try:
        made = make(**json.loads(options))
    except (TypeError, ValueError) as error:
        raise MeaningError("privacy.mechanism.options", f"{name} refuses its options: {error}") from None
    missing = [part for part in _NEEDED if not hasattr(made, part)]
    if missing:
        raise MeaningError(_KEY, f"{name} gives something without {', '.join(missing)}: no mechanism")
    if made.norm not in ("l1", "l2"):
        raise MeaningError(_KEY, f"{name} has the norm {made.norm!r}; must be l1 or l2")
    return cast("Noisy", made)

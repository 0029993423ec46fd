"""What accountants say of charges, and which of them say nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2psim.errors import InputError
from p2psim.parts import load_installed

if TYPE_CHECKING:
    import numpy as np

    from p2psim.privacy.accounting.accountants import Accountant
    from p2psim.privacy.accounting.charges import Charges
    from p2psim.privacy.accounting.noises import Noise


@dataclass(frozen=True)
class At:
    """Where accounts are drawn up: ε at a δ, or δ at an ε; the other is None."""

    delta: float | None
    epsilon: float | None

    def sums(self, accountant: Accountant, charges: Charges, holders: int = 1) -> np.ndarray:
        """ε or δ of a record of each agent, shape (N,), where up to ``holders`` agents may hold it."""
        from p2psim.privacy.overlap import of_shared_record

        if self.delta is not None:
            return of_shared_record(accountant.epsilon(charges, self.delta / holders), holders)
        assert self.epsilon is not None
        found = of_shared_record(accountant.delta(charges, self.epsilon / holders), holders)
        return found.clip(max=1.0)

    @property
    def asked(self) -> str:
        """Name of what is told."""
        return "ε" if self.delta is not None else "δ"

    @property
    def fixed(self) -> str:
        """What is held fixed, in words."""
        return f"δ = {self.delta:g}" if self.delta is not None else f"ε = {self.epsilon:g}"


def chosen(named: Sequence[str] | None, noises: Sequence[Noise]) -> tuple[dict[str, Accountant], list[str]]:
    """Accountants that were named, or all that support every noise; and in words which were left out.

    Raises
    ------
    InputError
        If one that was named is unknown, or does not support a noise; says which do.
    """
    from p2psim.privacy.accounting.accountants import ACCOUNTANTS

    for name in named or ():
        if name not in ACCOUNTANTS and not (load_installed() and name in ACCOUNTANTS):
            # Here and not above: it imports the language of scenarios.
            from p2psim.study.faults import unknown

            raise InputError(f"--accountant: {unknown('accountant', name, list(ACCOUNTANTS))}")
    able = {
        name: accountant
        for name, accountant in ACCOUNTANTS.items()
        if all(accountant.supports(noise) for noise in noises)
    }
    for name in named or ():
        if name not in able:
            lacking = next(noise.name for noise in noises if not ACCOUNTANTS[name].supports(noise))
            raise InputError(
                f"--accountant: {name} cannot account for {lacking} releases; {', '.join(able)} can"
            )
    if named:
        return {name: able[name] for name in dict.fromkeys(named)}, []
    return able, [name for name in ACCOUNTANTS if name not in able]

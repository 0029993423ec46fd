"""Basic composition: losses of pure DP add up (Dwork, McSherry, Nissim, Smith 2006)."""

from __future__ import annotations

import numpy as np

from p2psim.privacy.accounting.accountant import Accountant, is_pure, pure_losses
from p2psim.privacy.accounting.charges import Lists


def basic_epsilon(lists: Lists, delta: float) -> np.ndarray:
    """Σ ε₀, at every δ, shape (lists,)."""
    return lists.total(pure_losses(lists))


def basic_delta(lists: Lists, epsilon: float) -> np.ndarray:
    """0 where Σ ε₀ is within ε, else 1, shape (lists,)."""
    return np.where(basic_epsilon(lists, 0.0) <= epsilon, 0.0, 1.0)


BASIC = Accountant("basic", False, is_pure, basic_epsilon, basic_delta)

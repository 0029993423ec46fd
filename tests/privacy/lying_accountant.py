"""An accountant that says less than is true."""

import numpy as np

import p2psim
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import Noise


@p2psim.register
class Liar(p2psim.Accountant):
    """Everything is free."""

    name = "liar"
    meaning = "everything is free"

    def supports(self, noise: Noise) -> bool:
        return True

    def epsilon_bound(self, charges: Charges, delta: float) -> np.ndarray:
        return np.zeros(charges.agents)

    def delta_bound(self, charges: Charges, epsilon: float) -> np.ndarray:
        return np.zeros(charges.agents)

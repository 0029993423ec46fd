"""Losses of one record, each a function of the score z = θᵀx and the label y.

A loss offers ``values``, ``slopes`` and ``second_slopes`` (ℓ, ∂ℓ/∂z and ∂²ℓ/∂z², elementwise), ``slope_bounds`` (the
largest |∂ℓ/∂z| that a record can reach on Θ), ``curvature`` (the largest ∂²ℓ/∂z²; infinite at a kink),
``needs_classes`` and the ``code`` by which :mod:`p2psim.learning.losses.compiled` knows it.
"""

from typing import Annotated

from pydantic import Field

from p2psim.learning.losses.hinge import Hinge
from p2psim.learning.losses.logistic import Logistic
from p2psim.learning.losses.squared import Squared
from p2psim.options import BY_NAME

Loss = Annotated[Squared | Hinge | Logistic, Field(discriminator="kind"), BY_NAME]

__all__ = ["Hinge", "Logistic", "Loss", "Squared"]

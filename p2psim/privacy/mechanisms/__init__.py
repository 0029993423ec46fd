"""Noise that makes releases private: one mechanism a file, each a `protocol.Mechanism`, and one name here."""

from typing import Annotated

from p2psim.core.options import BY_NAME
from p2psim.core.registry import AnyOf, register_all
from p2psim.privacy.mechanisms.discrete_laplace import DiscreteLaplace
from p2psim.privacy.mechanisms.noise import Gaussian, Laplace, NoNoise
from p2psim.privacy.mechanisms.protocol import Mechanism, noise_scales

register_all([NoNoise, Laplace, Gaussian, DiscreteLaplace])

#: Any mechanism that is registered.
AnyMechanism = Annotated[Mechanism, AnyOf("mechanism"), BY_NAME]

__all__ = [
    "AnyMechanism",
    "DiscreteLaplace",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "NoNoise",
    "noise_scales",
]

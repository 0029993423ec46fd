"""Noise that makes releases private: one mechanism a file, each a `protocol.Noisy`, and one line here."""

from typing import Annotated

from pydantic import Field

from p2psim.options import BY_NAME
from p2psim.privacy.mechanisms.discrete_laplace import DiscreteLaplace
from p2psim.privacy.mechanisms.gaussian import Gaussian
from p2psim.privacy.mechanisms.laplace import Laplace
from p2psim.privacy.mechanisms.none import NoNoise
from p2psim.privacy.mechanisms.protocol import Noisy, noise_scales
from p2psim.privacy.mechanisms.registered import Registered

Mechanism = Annotated[
    NoNoise | Laplace | Gaussian | DiscreteLaplace | Registered, Field(discriminator="kind"), BY_NAME
]

__all__ = [
    "DiscreteLaplace",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "NoNoise",
    "Noisy",
    "Registered",
    "noise_scales",
]

"""A small convolutional network of PyTorch, as a model of a scenario."""

from typing import TYPE_CHECKING, Literal

from pydantic import Field

import p2psim

if TYPE_CHECKING:
    import torch


@p2psim.register
class Convolution(p2psim.TorchModel):
    """A convolution of square grey images, max(0, z), the mean of each 2 × 2 pixels, and a dense layer."""

    kind: Literal["convolution"] = "convolution"
    channels: int = Field(4, ge=1, description="outputs of the convolution per pixel")

    def module(self, features: int, classes: int) -> "torch.nn.Module":
        import torch

        side = round(features**0.5)
        return torch.nn.Sequential(
            torch.nn.Unflatten(1, (1, side, side)),
            torch.nn.Conv2d(1, self.channels, 3, padding=1),
            torch.nn.ReLU(),
            torch.nn.AvgPool2d(2),
            torch.nn.Flatten(),
            torch.nn.Linear(self.channels * (side // 2) ** 2, classes),
        )

"""Metrics of classes are not for models that predict numbers, nor the reverse."""

import pytest

from p2psim.core.errors import InputError
from p2psim.scenario.model import Scenario

TEXT = """
name: labels
network: {{topology: {{kind: star, agents: 4}}, exchange: round}}
data: {{source: {{kind: {source}, dimension: 3, points: 20}}, test_fraction: 0.2}}
learning: {{algorithm: {{kind: fedavg, step: 0.1, commits: 5}}, loss: {loss}, regularizer: {{l2: 0.1}}}}
record: {{metrics: [objective, {metric}]}}
"""


@pytest.mark.parametrize(
    ("source", "loss", "metric", "cure"),
    [
        ("linear-regression", "squared", "test_accuracy", "test_rmse"),
        ("linear-regression", "squared", "mean_model_accuracy", "test_rmse"),
        ("linear-classification", "logistic", "test_rmse", "test_accuracy"),
    ],
)
def test_refused(source: str, loss: str, metric: str, cure: str) -> None:
    with pytest.raises(
        InputError, match=f"record.metrics.1: {metric} is of labels that are .*; record {cure}"
    ):
        Scenario.parse(TEXT.format(source=source, loss=loss, metric=metric), "s.yaml")
    kept = Scenario.parse(TEXT.format(source=source, loss=loss, metric=cure), "s.yaml")
    assert list(kept.record.metrics) == ["objective", cure]

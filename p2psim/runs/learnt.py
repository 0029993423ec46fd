"""A model that a run learnt, for new records in their original units."""

import json
import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from p2psim.core.errors import InputError
from p2psim.data.classes import SIGNS
from p2psim.data.mapping import RecordMap
from p2psim.scenario.model import Scenario

if TYPE_CHECKING:
    from p2psim.learning.models.protocol import Model


#: What reading a file raises that is none, or was changed.
_UNREADABLE = (
    OSError, ValueError, KeyError, TypeError, EOFError, IndexError, AttributeError, RecursionError, BadZipFile,
    InputError,
)  # fmt: skip


@dataclass(frozen=True)
class LearntModel:
    """A model of one agent, or of the learner, with what makes its features of records.

    What predictions reveal about the training records is what the ledger says of the parameters.

    Attributes
    ----------
    theta : ndarray of float64, shape (p,)
        With the intercept last, where there is one.
    scenario : Scenario
        Of its cell.
    preparation : dict
        What the preparation of the data found.
    classes : tuple of str
        Names of the classes, in the order of their numbers; none where labels are numbers.
    """

    theta: np.ndarray
    scenario: Scenario
    preparation: dict[str, Any]
    classes: tuple[str, ...]

    @property
    def records(self) -> RecordMap:
        """What makes features of records."""
        return RecordMap(self.scenario.data, self.preparation)

    @property
    def model(self) -> "Model":
        """The model's form."""
        return self.scenario.learning.trained_model

    @property
    def has_intercept(self) -> bool:
        """Whether the last feature is always one."""
        loss = self.scenario.learning.loss
        return loss is not None and loss.intercept

    def decision_function(self, records: Any) -> np.ndarray:
        """Scores before they become labels: shape (n,), or (n, classes); as scikit-learn's method of this name.

        Parameters
        ----------
        records : pandas.DataFrame or array_like, shape (n, columns)
            In the units and with the columns of the source, before any feature.
        """
        outputs = self._outputs(self.records(records))
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def _outputs(self, features: np.ndarray) -> np.ndarray:
        if self.has_intercept:
            features = np.column_stack([features, np.ones(len(features))])
        return self.model.outputs(self.theta, features)

    def predict(self, records: Any) -> np.ndarray:
        """Labels of records, shape (n,): names of classes, or numbers in the units of the source.

        Raises
        ------
        InputError
            If the records have other columns than the source, or values that it cannot have.
        """
        scores = self.decision_function(records)
        if not self.classes:
            return self.records.labels(scores)
        numbers = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
        return np.array(self.classes)[numbers]

    def score(self, records: Any, labels: Any) -> float:
        """Share of right classes, or R² of numbers, as scikit-learn's estimators give it."""
        said, labels = self.predict(records), np.asarray(labels)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.shape != said.shape:
            raise InputError(f"labels: {said.size} are expected, got an array of shape {labels.shape}")
        if self.classes and labels.dtype.kind in "OUS":
            return float(np.mean(said == labels.astype(str)))
        try:
            labels = labels.astype(np.float64)
            said = said.astype(np.float64)
        except (TypeError, ValueError):
            kind = f"names of classes, such as {self.classes[0]}," if self.classes else "numbers"
            raise InputError(f"labels: {kind} are expected, got {labels.dtype}") from None
        if not np.isfinite(labels).all():
            raise InputError("labels: must be finite")
        if self.classes:
            return float(np.mean(said == labels))
        deviation = float(np.sum((labels - labels.mean()) ** 2))
        if deviation == 0:
            raise InputError("labels: R² needs labels that are not all the same")
        return 1 - float(np.sum((labels - said) ** 2)) / deviation

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, as arrays and text without pickle; `load` reads it."""
        text = {"scenario": self.scenario.to_yaml(), "preparation": self.preparation, "classes": self.classes}
        with Path(path).open("wb") as file:
            np.savez(file, theta=self.theta, described=np.array(json.dumps(text)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "LearntModel":
        """Read a model that `save` wrote.

        Raises
        ------
        InputError
            If the file cannot be read, or is none of these.
        """
        try:
            with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                theta, text = np.asarray(file["theta"], dtype=np.float64), json.loads(str(file["described"]))
            made = cls(theta, Scenario.parse(text["scenario"]), text["preparation"], tuple(text["classes"]))
            _ = made.records.names, made.model.kind
        except _UNREADABLE as error:
            raise InputError(f"{os.fspath(path)}: is no saved model ({error})") from None
        if theta.ndim != 1 or not np.isfinite(theta).all():
            raise InputError(f"{os.fspath(path)}: is no saved model (its parameters are not finite numbers)")
        return made

    def coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercepts by which a linear model's scores follow from original columns.

        Categories, dates and missing values are numbers there (``records.names``; ``records.encoded`` makes them).
        They hold for records that no scaling pulls onto its ball (``data.scale.x.bound``).

        Returns
        -------
        weights : ndarray, shape (outputs, columns)
        intercepts : ndarray, shape (outputs,)
            Both in the units of the labels, where these are numbers.

        Raises
        ------
        InputError
            If the model, or the preparation, is not linear.
        """
        if self.model.kind not in ("linear", "softmax"):
            raise InputError(f"learning.model: {self.model.kind} has no coefficients of columns")
        scale = self.scenario.data.scale.x
        if scale is not None and scale.at == "each-record":
            raise InputError("data.scale.x.at: each-record is not linear, so that there are no coefficients")
        columns = len(self.records.names) or self._unnamed_columns()
        points = np.vstack([np.zeros(columns), np.eye(columns)])
        outputs = self._outputs(self.records(points, within=False))
        if not self.classes:
            outputs = self.records.labels(outputs)
        return (outputs[1:] - outputs[0]).T, outputs[0]

    def to_sklearn(self) -> Any:
        """Return scikit-learn's ``LinearRegression`` or ``LogisticRegression`` of original columns, as if fitted.

        Raises
        ------
        InputError
            As `coefficients`, or if the loss is none of theirs.
        """
        from sklearn.linear_model import LinearRegression, LogisticRegression

        loss = self.scenario.learning.loss
        if self.classes and loss is not None and loss.kind != "logistic":
            raise InputError(
                f"learning.loss: scikit-learn's logistic regression has not the loss {loss.kind}"
            )
        weights, intercepts = self.coefficients()
        if len(self.classes) == 2 and len(weights) == 2:
            weights, intercepts = weights[1:] - weights[:1], intercepts[1:] - intercepts[:1]
        estimator: Any = LogisticRegression() if self.classes else LinearRegression()
        estimator.n_features_in_ = weights.shape[1]
        if self.records.names:
            estimator.feature_names_in_ = np.array(self.records.names, dtype=object)
        if self.classes:
            estimator.coef_, estimator.intercept_ = weights, intercepts
            estimator.classes_ = np.array(self.classes)
        else:
            estimator.coef_, estimator.intercept_ = weights[0], float(intercepts[0])
        return estimator

    def to_torch(self) -> Any:
        """Return a ``torch.nn.Module`` of prepared features (`records` makes them), in float64.

        Raises
        ------
        InputError
            If the model is not linear, softmax regression or a multilayer perceptron.
        MissingSourceError
            If PyTorch is not installed.
        """
        from p2psim.learning.models.torch_module import import_torch

        if self.model.kind not in ("linear", "softmax", "mlp"):
            raise InputError(f"learning.model: {self.model.kind} is no model that PyTorch has layers for")
        torch = import_torch()
        is_linear = self.model.kind == "linear"
        sizes = [*getattr(self.model, "hidden", ()), 1 if is_linear else len(self.classes)]
        bias = not is_linear or self.has_intercept
        rest = sum((inputs + bias) * outputs for inputs, outputs in pairwise(sizes))
        sizes = [(self.theta.size - rest) // sizes[0] - bias, *sizes]
        layers: list[Any] = []
        for inputs, outputs in pairwise(sizes):
            layers += [torch.nn.Linear(inputs, outputs, bias=bias, dtype=torch.float64)]
            layers += [torch.nn.Tanh() if getattr(self.model, "is_smooth", False) else torch.nn.ReLU()]
        module = torch.nn.Sequential(*layers[:-1])
        torch.nn.utils.vector_to_parameters(torch.tensor(self.theta), module.parameters())
        return module

    def _unnamed_columns(self) -> int:
        features = self.preparation.get("features", ())
        return len(features[0]["mean"]) if features else self.theta.size - self.has_intercept


def recorded_model(
    models: np.ndarray,
    steps: np.ndarray,
    scenario: Scenario,
    preparation: dict[str, Any],
    agent: int | None,
    step: int | None,
) -> LearntModel:
    """One of the models that a simulation recorded at some steps; see `p2psim.runs.result.Result.model`."""
    steps = np.sort(steps)
    if step is not None and (step not in steps or len(steps) != len(models)):
        raise InputError(f"step: no model was recorded at {step}")
    theta = models[-1 if step is None else int(np.searchsorted(steps, step))]
    if theta.ndim == 2 and scenario.network.exchange.needs_learner:
        (theta,) = theta
    if agent is not None and not isinstance(agent, int):
        raise InputError(f"agent: the index of an agent is expected, got {agent!r}")
    if theta.ndim == 1 and agent is not None:
        raise InputError("agent: the learner's model is the only one")
    if theta.ndim == 2:
        if agent is None and scenario.learning.algorithm.objective != "shared":
            raise InputError("agent: every agent has a model of its own; say which agent is meant")
        if agent is not None and not 0 <= agent < len(theta):
            raise InputError(f"agent: must lie between 0 and {len(theta) - 1}, got {agent}")
        theta = theta.mean(axis=0) if agent is None else theta[agent]
    signs = scenario.learning.trained_model.labels == "signs"
    classes = tuple(preparation.get("classes", ())) or (SIGNS if signs else ())
    return LearntModel(np.array(theta), scenario, preparation, classes)

"""A model that a run learnt, for new records in their original units."""

import hashlib
import io
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from p2psim.core.agent_names import some
from p2psim.core.errors import InputError
from p2psim.core.files import write_bytes
from p2psim.core.nodes import plain
from p2psim.data.classes import SIGNS
from p2psim.data.mapping import RecordMap
from p2psim.scenario import yaml
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
        with np.errstate(over="ignore", invalid="ignore"):
            outputs = self._outputs(self.records(records))
        for row in np.flatnonzero(~np.isfinite(outputs).all(axis=1))[:1]:
            raise InputError(f"records: numbers overflow in row {row}: no label follows from them")
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
        """Write the model to a file, whole or not at all, as arrays and text without pickle; `load` reads it.

        The file holds the resolved scenario and a hash of everything, so that it needs no other file.
        """
        tree = {"scenario": self.scenario.to_yaml(), "preparation": self.preparation, "classes": self.classes}
        text, file = json.dumps(tree), io.BytesIO()
        np.savez(file, theta=self.theta, described=np.array(text), sha256=np.array(_seal(self.theta, text)))
        write_bytes(Path(path), file.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "LearntModel":
        """Read a model that `save` wrote. Files that its scenario names may have changed: no prediction reads them.

        Raises
        ------
        InputError
            If the file cannot be read, is none of these, or is not as it was written.
        """
        try:
            with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                theta, described = np.asarray(file["theta"], dtype=np.float64), str(file["described"])
                if str(file["sha256"]) != _seal(theta, described):
                    raise InputError("it was changed after it was written")
            text = json.loads(described)
            tree = plain(yaml.read(text["scenario"]))
            if "extends" in tree:
                raise InputError("its scenario extends another file")
            scenario = Scenario.from_dict(_without_seals(tree))
            made = cls(theta, scenario, text["preparation"], tuple(text["classes"]))
            _ = made.records.names, made.model.kind
        except _UNREADABLE as error:
            # NumPy takes any other file for a pickle, and says how to load one.
            why = "LearntModel.save wrote no such file" if "pickle" in str(error) else error
            raise InputError(f"{os.fspath(path)}: is not a saved model ({why})") from None
        if theta.ndim != 1 or not np.isfinite(theta).all():
            message = f"{os.fspath(path)}: is not a saved model (its parameters are not finite numbers)"
            raise InputError(message)
        return made

    def coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercepts by which a linear model's scores follow from original columns.

        Categories, dates and missing values are numbers there (``records.names``; ``records.encoded`` makes them).
        They hold for records that ``data.scale.x`` does not shorten; `predict` and `to_sklearn` shorten the others.

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
        self._refuse_layers()
        for feature in self.scenario.data.features:
            if not feature.is_linear:
                message = f"data.features: {feature.kind} is not linear, so that there are no coefficients"
                raise InputError(message)
        scale = self.scenario.data.scale.x
        if scale is not None and scale.at == "each-record":
            raise InputError("data.scale.x.at: each-record is not linear, so that there are no coefficients")
        columns = len(self.records.names) or self._unnamed_columns()
        return self._affine(columns, partial(self.records, within=False))

    def _refuse_layers(self) -> None:
        if self.model.hidden_layers != ():
            raise InputError(f"learning.model: {self.model.kind} has no coefficients of columns")

    def _affine(
        self, columns: int, features: Callable[[np.ndarray], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercepts of scores, or of labels in their units, by columns that an affine map takes."""
        outputs = self._outputs(features(np.vstack([np.zeros(columns), np.eye(columns)])))
        if not self.classes:
            outputs = self.records.labels(outputs)
        return (outputs[1:] - outputs[0]).T, outputs[0]

    def to_sklearn(self) -> Any:
        """Return an estimator of scikit-learn, as if fitted, that predicts what `predict` does for every record.

        Where the preparation is linear, it is a ``LinearRegression`` or ``LogisticRegression`` of original columns.
        Where it is not (``data.scale.x`` shortens long records; random features), it is a ``Pipeline`` of the
        preparation and such an estimator of prepared features.

        Raises
        ------
        InputError
            If the model is not linear, or the loss is none of theirs.
        """
        from sklearn.linear_model import LinearRegression, LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import FunctionTransformer

        loss = self.scenario.learning.loss
        if self.classes and loss is not None and loss.kind != "logistic":
            raise InputError(
                f"learning.loss: must be logistic for scikit-learn's LogisticRegression, got {loss.kind}"
            )
        self._refuse_layers()
        data = self.scenario.data
        is_linear = data.scale.x is None and all(feature.is_linear for feature in data.features)
        if is_linear:
            weights, intercepts = self.coefficients()
        else:
            weights, intercepts = self._affine(self._layer_sizes()[0], lambda rows: rows)
        if len(self.classes) == 2 and len(weights) == 2:
            weights, intercepts = weights[1:] - weights[:1], intercepts[1:] - intercepts[:1]
        estimator: Any = LogisticRegression() if self.classes else LinearRegression()
        estimator.n_features_in_ = weights.shape[1]
        if is_linear and self.records.names:
            estimator.feature_names_in_ = np.array(self.records.names, dtype=object)
        if self.classes:
            estimator.coef_, estimator.intercept_ = weights, intercepts
            estimator.classes_ = np.array(self.classes)
        else:
            estimator.coef_, estimator.intercept_ = weights[0], float(intercepts[0])
        return estimator if is_linear else make_pipeline(FunctionTransformer(self.records), estimator)

    def to_torch(self) -> Any:
        """Return a ``torch.nn.Module`` in float64 that gives the scores of `decision_function` of prepared features.

        ``records`` makes these features of records, and shortens them where ``data.scale.x`` does.

        Raises
        ------
        InputError
            If the model is not linear, softmax regression or a multilayer perceptron.
        MissingSourceError
            If PyTorch is not installed.
        """
        from p2psim.learning.models.torch_model import import_torch

        if self.model.hidden_layers is None:
            message = f"learning.model: must be linear, softmax or mlp for PyTorch, got {self.model.kind}"
            raise InputError(message)
        torch = import_torch()
        sizes, bias = self._layer_sizes(), self._has_bias
        layers: list[Any] = []
        for inputs, outputs in pairwise(sizes):
            layers += [torch.nn.Linear(inputs, outputs, bias=bias, dtype=torch.float64)]
            layers += [torch.nn.Tanh() if getattr(self.model, "is_smooth", False) else torch.nn.ReLU()]
        module = torch.nn.Sequential(*layers[:-1])
        torch.nn.utils.vector_to_parameters(torch.tensor(self.theta), module.parameters())
        return module

    @property
    def _has_bias(self) -> bool:
        return not self.model.uses_loss or self.has_intercept

    def _layer_sizes(self) -> list[int]:
        """Numbers of prepared features, of units of each hidden layer, and of scores."""
        sizes = [*(self.model.hidden_layers or ()), 1 if self.model.uses_loss else len(self.classes)]
        rest = sum((inputs + self._has_bias) * outputs for inputs, outputs in pairwise(sizes))
        return [(self.theta.size - rest) // sizes[0] - self._has_bias, *sizes]

    def _unnamed_columns(self) -> int:
        features = self.preparation.get("features", ())
        return len(features[0]["mean"]) if features else self.theta.size - self.has_intercept


def _without_seals(tree: Any) -> Any:
    """A scenario without the hashes of files that it names, such as that of its graph."""
    if isinstance(tree, dict):
        is_file = "path" in tree
        return {
            key: _without_seals(value) for key, value in tree.items() if not (is_file and key == "sha256")
        }
    return [_without_seals(value) for value in tree] if isinstance(tree, list) else tree


def _seal(theta: np.ndarray, text: str) -> str:
    """SHA-256 of all that a saved model holds."""
    return hashlib.sha256(text.encode() + theta.tobytes()).hexdigest()


def recorded_model(
    models: np.ndarray,
    steps: np.ndarray,
    scenario: Scenario,
    preparation: dict[str, Any],
    agent: int | str | None,
    step: int | None,
    labels: Sequence[str],
) -> LearntModel:
    """One of the models that a simulation recorded at some steps; see `p2psim.runs.result.Result.model`."""
    steps = np.sort(steps)
    if step is not None and (step not in steps or len(steps) != len(models)):
        every = len(steps) == len(models) > 1
        known = some([str(one) for one in steps]) if every else "only the last one"
        raise InputError(f"step: no model was recorded at {step}; recorded: {known}")
    theta = models[-1 if step is None else int(np.searchsorted(steps, step))]
    if theta.ndim == 2 and scenario.network.exchange.needs_learner:
        (theta,) = theta
    if agent is not None and not isinstance(agent, int | np.integer | str):
        raise InputError(f"agent: the index or the label of an agent is expected, got {agent!r}")
    if theta.ndim == 1 and agent is not None:
        raise InputError("agent: the learner's model is the only one; leave agent out")
    if isinstance(agent, str):
        if agent not in labels:
            raise InputError(f"agent: no agent has the label {agent!r}; the labels are {some(labels)}")
        agent = labels.index(agent)
    if theta.ndim == 2:
        if agent is None and scenario.learning.algorithm.objective != "shared":
            raise InputError("agent: every agent has its own model; give the index or the label of an agent")
        if agent is not None and not 0 <= agent < len(theta):
            raise InputError(f"agent: must lie between 0 and {len(theta) - 1}, got {agent}")
        theta = theta.mean(axis=0) if agent is None else theta[agent]
    named = scenario.learning.trained_model.labels != "numbers"
    classes = tuple(preparation.get("classes", ())) or (SIGNS if named else ())
    return LearntModel(np.array(theta), scenario, preparation, classes)

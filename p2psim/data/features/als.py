"""Features of items from ratings, by alternating least squares with weighted-λ-regularization (ALS-WR).

Zhou, Wilkinson, Schreiber, Pan, "Large-scale Parallel Collaborative Filtering for the Netflix Prize" (2008).
Minimises Σ (y − u_aᵀv_b)² + λ(Σ_a n_a‖u_a‖² + Σ_b n_b‖v_b‖²) over the ratings y of item b by agent a, n the
numbers of ratings of each.
"""

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.options import Count, Positive
from p2psim.data.features.maps import Feature, Fitted, Names
from p2psim.data.groups import owner_of_row
from p2psim.data.records import Held

#: Entries that start the search, the first factor apart, are uniform in [0, START).
START = 0.1


class ALS(Feature):
    """Factors of the rated item, from all training ratings by alternating least squares (ALS-WR).

    For sources of ratings, and first among the features. They are computed from owners' records, and no
    budget pays for that; the ledger says so.
    """

    kind: Literal["als"] = "als"
    factors: Count = Field(20, description="number of factors, the features of an item")
    regularization: Positive = Field(
        0.015, description="λ, weighted by the number of ratings of the agent or item"
    )
    iterations: Count = Field(10, description="how often both sides are solved")

    needs_public: ClassVar[bool] = False
    needs_ratings: ClassVar[bool] = True
    data_dependent: ClassVar[bool] = True

    def fit(self, public: np.ndarray, names: Names, key: str, random: np.random.Generator) -> Fitted:
        """Refuse: there are no factors of public rows alone."""
        raise NotImplementedError("als is fitted on owners' ratings, by transform")

    def transform(self, held: Held, key: str, random: np.random.Generator) -> tuple[Held, dict[str, object]]:
        """Put the factors of the rated items in place of the items' numbers.

        The factors are fitted on all owners' training records, with the labels as they are now.

        Returns
        -------
        held : Held
            Without `items`; the rows of items without a training rating are 0.
        fitted : dict
        """
        assert held.items is not None
        agent, item = owner_of_row(held.offsets), items_of(held.X)
        of_agents, of_items = self.factorise(held, agent, item, random)
        X = of_items[item]
        error = held.y - (of_agents[agent] * X).sum(axis=1)
        names = tuple(f"als{j + 1}" for j in range(self.factors))
        test = replace(held.tests, X=of_items[items_of(held.tests.X)])
        fitted: dict[str, object] = {
            **self.model_dump(mode="json"),
            "items_without_ratings": int((np.bincount(item, minlength=held.items) == 0).sum()),
            "training_rmse": float(np.sqrt((error**2).mean())),
            "names": list(names),
        }
        held = replace(held, X=X, public=of_items[items_of(held.public)], test=test, names=names)
        return replace(held, items=None, x_l1=None, x_max=None), fitted

    def factorise(
        self, held: Held, agent: np.ndarray, item: np.ndarray, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Alternate between the agents' and the items' least squares, agents first.

        The items start as in the paper: the mean of the item's ratings, then small random numbers.

        Parameters
        ----------
        held : Held
        agent, item : ndarray of int, shape (r,)
            Who rates what.
        random : numpy.random.Generator

        Returns
        -------
        of_agents : ndarray, shape (n, factors)
        of_items : ndarray, shape (m, factors)
            Zero where an item has no rating.
        """
        assert held.items is not None
        y, items, agents = held.y, held.items, len(held.labels)
        of_agents, of_items = np.zeros((agents, self.factors)), START * random.random((items, self.factors))
        counts = np.bincount(item, minlength=items)
        of_items[:, 0] = np.bincount(item, weights=y, minlength=items) / np.maximum(counts, 1)
        by_agent, by_item = _rows(agent, agents), _rows(item, items)
        for _ in range(self.iterations):
            of_agents = _solve(by_agent, item, y, of_items, self.regularization)
            of_items = _solve(by_item, agent, y, of_agents, self.regularization)
        return of_agents, of_items


def _rows(group: np.ndarray, groups: int) -> list[np.ndarray]:
    """The places of each group's entries."""
    return np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group, minlength=groups))[:-1])


def _solve(
    rows: list[np.ndarray], other: np.ndarray, y: np.ndarray, theirs: np.ndarray, regularization: float
) -> np.ndarray:
    """Ridge regression of each group's ratings on the other side's factors; 0 without ratings."""
    q = theirs.shape[1]
    ours = np.zeros((len(rows), q))
    for place, of_group in enumerate(rows):
        if len(of_group):
            A = theirs[other[of_group]]
            penalty = regularization * len(of_group) * np.eye(q)
            ours[place] = np.linalg.solve(A.T @ A + penalty, A.T @ y[of_group])
    return ours


def items_of(X: np.ndarray) -> np.ndarray:
    """Numbers of the items, shape (n,), of records that are ratings."""
    return X[:, 0].astype(np.int64)


def profiles_of(held: Held, items: int) -> Any:
    """Owners' training labels by item, a scipy.sparse.csr_array of shape (N, items): what owners are compared by."""
    from scipy.sparse import csr_array

    ratings = csr_array((held.y.copy(), items_of(held.X), held.offsets), shape=(len(held.labels), items))
    ratings.sort_indices()
    return ratings

"""What a source of records is, and what it gives: rows that nobody holds yet, or records that owners already hold."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from p2psim.core.options import Options
from p2psim.data.scaling import Fill

#: Streams of the purpose ``data`` that belong to no owner; owner i's own draws are at agent i.
SHUFFLE, PARTITION, TARGETS, PUBLIC, FACTORS = -1, -2, -3, -4, -5


def offsets_of(sizes: ArrayLike) -> np.ndarray:
    """Where each owner's rows begin, shape (N + 1,), of rows that lie owner by owner in these numbers, shape (N,)."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


#: Says where a row stands, by its number from 0.
Where = Callable[[int], str]


def row_name(row: int) -> str:
    """Place of a row, which counts from 0, where no line is known."""
    return f"row {row + 1}"


@dataclass(frozen=True)
class DataRequest:
    """What a source may need to know.

    Attributes
    ----------
    key : ndarray of uint64, shape (2,)
        Key of the stream of data draws; the whole randomness of a source comes from it.
    agents : int or None
        Number of owners that the network asks for; None: as many as there are.
    public : int
        Number of rows that the learner shall know.
    held_by : str or None
        The column that the partition goes by, which is never a feature.
    labels : tuple of str or None
        Names that the network gives to owners who have no others; None: 0 … N − 1.
    classes : bool
        Whether the scenario says that labels are classes: they may then be text. A source gives their names in
        `Table.classes`, or leaves it to the preparation to name them by the numbers in y.
    per_owner : tuple of str
        Columns that hold a number per owner, which are never features; a table has them in `Table.numbers`.
    """

    key: np.ndarray
    agents: int | None = None
    public: int = 0
    held_by: str | None = None
    labels: tuple[str, ...] | None = None
    classes: bool = False
    per_owner: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """Rows in the order of the source; shuffling, public rows and owners are the preparation's business.

    Attributes
    ----------
    X : ndarray of float64, shape (n, p)
    y : ndarray of float64, shape (n,)
    names : tuple of str
        The p features.
    columns : mapping from str to array of n values
        Every column that rows can be divided by, unconverted.
    held_by : str or None
        The column that divides the rows unless a partition is given.
    notes : dict
        What was done to the source, in plain JSON types.
    warnings : tuple of str
    items : int or None
        With a number, a row is a rating, X is one column, and it holds whole numbers below `items`: the item
        that is rated. Features of the item take its place in the preparation.
    where : callable
        Place of a row, which counts from 0, for errors.
    classes : tuple of str
        Names of the classes, where labels are classes: y is then the place of each record's class in it.
    fill : {"mean", "median"} or None
        With it, NaN in X is replaced by this of the column's public values.
    tests : int
        Number of rows, the last ones, that are test records.
    numbers : mapping from str to ndarray of float64, shape (n,)
        Columns of `DataRequest.per_owner`, as they are written.
    """

    X: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]
    columns: Mapping[str, Any] = field(default_factory=dict)
    held_by: str | None = None
    notes: dict[str, object] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    items: int | None = None
    where: Where = row_name
    classes: tuple[str, ...] = ()
    fill: Fill | None = None
    tests: int = 0
    numbers: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class TestSet:
    """Records that are kept from training, owner by owner. The arrays may be changed in place.

    Attributes
    ----------
    X : ndarray of float64, shape (t, p)
    y : ndarray of float64, shape (t,)
    offsets : ndarray of int64, shape (N + 1,)
        Owner i tests with rows ``offsets[i]:offsets[i + 1]``, possibly none.
    """

    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray


@dataclass(frozen=True)
class Held:
    """Records that the source itself gives to owners. The arrays may be changed in place.

    Attributes
    ----------
    X : ndarray of float64, shape (n, p)
        Owner by owner.
    y : ndarray of float64, shape (n,)
    offsets : ndarray of int64, shape (N + 1,)
        Owner i holds rows ``offsets[i]:offsets[i + 1]``.
    names : tuple of str
        The p features.
    labels : tuple of str
        The N owners.
    public : ndarray of float64, shape (m, p)
        The learner's own rows, possibly none.
    public_labels : ndarray of float64, shape (m,)
    x_l1, x_max : float or None
        Bounds on ‖x‖₁ and |x_j| that hold whatever is drawn.
    notes : dict
        Plain JSON types.
    items : int or None
        As in `Table`.
    test : TestSet or None
        What the source itself keeps from training.
    targets : ndarray of float64, shape (N, p), or None
        The models that the labels were drawn from.
    classes : tuple of str
        As in `Table`.
    groups : tuple of str or None
        The owners' groups, where a column says them.
    columns : dict of ndarray of float64, shape (N,)
        Columns that have one number per owner.
    """

    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    names: tuple[str, ...]
    labels: tuple[str, ...]
    public: np.ndarray
    public_labels: np.ndarray
    x_l1: float | None = None
    x_max: float | None = None
    notes: dict[str, object] = field(default_factory=dict)
    items: int | None = None
    test: TestSet | None = None
    targets: np.ndarray | None = None
    classes: tuple[str, ...] = ()
    groups: tuple[str, ...] | None = None
    columns: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def tests(self) -> TestSet:
        """What is kept from training, perhaps nothing."""
        nothing = TestSet(np.empty((0, self.X.shape[1])), np.empty(0), np.zeros_like(self.offsets))
        return self.test or nothing


class GivesOwners(Options):
    """Base of what may say how many owners there are."""

    @property
    def given_owners(self) -> tuple[str, int] | None:
        """The key that gives their number, and the number: by default ``agents``, if there is such a key."""
        agents = getattr(self, "agents", None)
        return ("agents", agents) if isinstance(agents, int) else None


class DataSource(GivesOwners):
    """Base of all sources of records.

    A source of your own is a subclass with a ``kind``, its own keys, what people should know about it, and
    ``load``. A key with the path of a file has the type `p2psim.core.files.DataPath`, and
    `p2psim.core.files.checked` makes sure that the file is there.

    Attributes
    ----------
    kind : str
        The name, as ``kind: Literal["arff"] = "arff"``.
    about : str
        What it holds, in a line, with what y is.
    citation, licence : str
        Whom to cite, and what is allowed.
    needs : str
        What makes it available: a command, or the key that names the user's file; empty if it is always there.
    generated : bool
        Whether records are drawn, not read; they are then drawn anew in every replica unless the scenario says
        otherwise.
    """

    part_kind: ClassVar[str] = "source"

    # Subclasses declare it with a Literal.
    kind: Any

    about: ClassVar[str]
    citation: ClassVar[str]
    licence: ClassVar[str]
    needs: ClassVar[str] = ""
    generated: ClassVar[bool] = False

    @abstractmethod
    def load(self, request: DataRequest) -> Table | Held:
        """Read or draw the records.

        Parameters
        ----------
        request : DataRequest
            What the scenario asks for. The whole randomness of a source comes from its key:
            ``p2psim.core.randomness.generator(request.key, agent)``.

        Returns
        -------
        Table or Held
            Rows that nobody holds yet, which the partition gives to owners; or records that owners hold already.

        Raises
        ------
        MissingSourceError
            If a file or a package is not there.
        MeaningError
            If what is there cannot be used, by the key that is to blame.
        """

    def x_bounds(self) -> tuple[float | None, float | None]:
        """Bounds on ‖x‖₁ and |x_j| that hold whatever is drawn or read, as in `Held`; None: nothing guarantees one."""
        return None, None

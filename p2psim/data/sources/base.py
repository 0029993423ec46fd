"""What a source of records is."""

from abc import abstractmethod
from typing import Any, ClassVar

from p2psim.core.options import Options
from p2psim.data.records import DataRequest, Held, Table


class DataSource(Options):
    """Base of all sources of records.

    A source of your own is a subclass with a ``kind``, keys of its own, what people should know about it, and
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

"""Final ψ against the number of records n (F figure 5)."""

from typing import TYPE_CHECKING

from p2psim.errors import InputError
from p2psim.report.points import points, records_of_cells
from p2psim.report.power import power_figure
from p2psim.report.source import FITNESS, Source

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_size(source: Source) -> "dict[str, Figure]":
    """Medians with 25 to 75 % bars, slope with its interval, and the fitted F (11), log-log.

    n counts the records of all owners, from the agents' table, whichever key of the data is swept.

    Raises
    ------
    InputError
        If all cells have the same number of records.
    """
    metric = source.metric or FITNESS
    rows = source.rows(metric)
    records = {cell: n for cell, n in records_of_cells(source).items() if n > 0}
    sizes = sorted({records[cell] for cell in rows["cell"].unique() if cell in records})
    if len(sizes) < 2:
        given = f"every cell has n = {sizes[0]:g}" if sizes else "the agents' table has none"
        raise InputError(
            f"the run has no sweep over the number of records ({given}); "
            "sweep a key of data.partition, for instance its sizes"
        )
    # The keys that set n are those whose value says which n a cell has, and that alone.
    heads = rows.drop_duplicates("cell")
    n = heads["cell"].map(records)
    setters = [
        key for key in source.swept if key.startswith("data.") and n.groupby(heads[key]).nunique().max() == 1
    ]
    lines = points(source, metric, records, hide=setters)
    stem = "size" if metric == FITNESS else f"size-{metric}"
    return {stem: power_figure(source, metric, lines, "records", "n")}

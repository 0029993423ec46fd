"""All metrics that can be recorded, of any algorithm; importing this registers those of p2psim."""

from p2psim.learning import graph_metrics, metrics  # noqa: F401
from p2psim.metric import Metric
from p2psim.network import metrics as network_metrics  # noqa: F401
from p2psim.registry import parts
from p2psim.study import record  # noqa: F401


def metric_named(name: str) -> type[Metric] | None:
    """The metric of a name in tables, which may end with a group in brackets; None if it is not known here."""
    found: type[Metric] | None = parts("metric").get(name.partition("[")[0])
    return found


def label_of(name: str) -> str:
    """Label of a metric's axis, on one line; what is not known here, or of a group, keeps its name."""
    known = metric_named(name) if "[" not in name else None
    return (known.label if known is not None else "") or name.replace("_", " ")

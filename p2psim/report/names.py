"""Names of figures and axes, for help and messages: nothing heavy is loaded to list them."""

#: Kinds of figures, each a file in `p2psim.report.kinds`.
KIND_NAMES = (
    "fitness",
    "timing",
    "epsilon",
    "size",
    "curves",
    "finals",
    "agents",
    "groups",
    "targets",
    "paired",
    "network",
    "load",
)

#: Those that are drawn along an axis of the run; the others show its end.
ALONG_THE_RUN = ("fitness", "curves", "groups", "targets", "network")

#: What these can be drawn against.
AGAINST = ("step", "time", "vectors_sent", "epsilon")

#: Metrics that are an axis: by what is asked for. Values belong together that were recorded at the same moment.
MEASURED_AXES = {"vectors_sent": "vectors_sent", "epsilon": "epsilon_spent"}

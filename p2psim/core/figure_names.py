"""Names of figures and axes, for scenarios, help and messages: nothing heavy is loaded to list them."""

#: Kinds of figures, each a file in `p2psim.report.figures`.
KIND_NAMES = (
    *("fitness", "timing", "epsilon", "size", "curves", "finals", "agents", "groups", "targets", "paired"),
    *("network", "load", "collaboration", "alone", "ecdf", "degree", "heatmap", "front"),
    *("spacetime", "graph", "spent", "forecast"),
)

#: Those that are only drawn where they are asked for: they compute for long.
ASKED_FOR = ("forecast",)

#: In the place of a kind: all that a run can give.
EVERYTHING = "all"

#: Those that are drawn along an axis of the run; the others show its end.
ALONG_THE_RUN = ("fitness", "curves", "groups", "targets", "network")

#: Those that can be drawn against a swept key.
AGAINST_A_KEY = ("finals", "collaboration")

#: Those whose bands or bars are quantiles over replicas.
WITH_QUANTILES = (
    *("fitness", "curves", "groups", "network", "epsilon", "size"),
    *("finals", "load", "collaboration", "alone", "front", "forecast"),
)

#: Those whose axis of values can be made linear or logarithmic.
WITH_LOG = (
    *("fitness", "curves", "groups", "network", "finals", "load", "collaboration", "alone"),
    *("agents", "ecdf", "degree", "heatmap", "front", "forecast"),
)

#: What those along the run can be drawn against.
AGAINST = ("step", "time", "vectors_sent", "epsilon")

#: Metrics that are an axis: by what is asked for. Values belong together that were recorded at the same moment.
MEASURED_AXES = {"vectors_sent": "vectors_sent", "epsilon": "epsilon_spent"}

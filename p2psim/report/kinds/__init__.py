"""Kinds of figures: one file each, and one line here."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from p2psim.report.kinds.agents import draw_agents
from p2psim.report.kinds.alone import draw_alone
from p2psim.report.kinds.collaboration import draw_collaboration
from p2psim.report.kinds.curves import draw_curves
from p2psim.report.kinds.epsilon import draw_epsilon
from p2psim.report.kinds.finals import draw_finals
from p2psim.report.kinds.fitness import draw_fitness
from p2psim.report.kinds.groups import draw_groups
from p2psim.report.kinds.load import draw_load
from p2psim.report.kinds.network import draw_network
from p2psim.report.kinds.paired import draw_paired
from p2psim.report.kinds.size import draw_size
from p2psim.report.kinds.targets import draw_targets
from p2psim.report.kinds.timing import draw_timing
from p2psim.report.source import Source

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: From a name to a function that gives figures by the stem of their files, or raises an InputError that
#: says what the run lacks.
KINDS: Mapping[str, Callable[[Source], "dict[str, Figure]"]] = {
    "fitness": draw_fitness,
    "timing": draw_timing,
    "epsilon": draw_epsilon,
    "size": draw_size,
    "curves": draw_curves,
    "finals": draw_finals,
    "agents": draw_agents,
    "groups": draw_groups,
    "targets": draw_targets,
    "paired": draw_paired,
    "network": draw_network,
    "load": draw_load,
    "collaboration": draw_collaboration,
    "alone": draw_alone,
}

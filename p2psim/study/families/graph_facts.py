"""What can be said of models on a graph before they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2psim.network.events import EVENT
from p2psim.network.spectrum import spectral_facts
from p2psim.study.families.stage import Assessment, privacy_of

if TYPE_CHECKING:
    from p2psim.study.families.graph import GraphCell


def assess(cell: GraphCell) -> Assessment:
    """Draw up the facts of one cell."""
    problem, stage = cell.problem, cell.stage
    expected = stage.commits if stage.commits is not None else (stage.time or 0.0) * stage.network.rates.sum()  # type: ignore[union-attr]
    hears = problem.indices.size / problem.agents if cell.scenario.network.exchange.kind == "broadcast" else 1
    events = int(expected * (3 + hears))
    facts: dict[str, object] = {
        "agents": problem.agents,
        "records": int(problem.records.sum()),
        "p": problem.dimension,
        "updates": int(expected),
        "μ": problem.mu,
        "C": problem.contraction,
        "Ξ": cell.bound,
        **spectral_facts(cell.links),
    }
    return Assessment(
        facts=facts,
        records=tuple(problem.records.tolist()),
        events=events,
        bytes_of_events=events * EVENT.itemsize,
        bytes_of_data=problem.X.nbytes + problem.y.nbytes + problem.test_X.nbytes,
        privacy=privacy_of(stage.plan),
        warnings=cell.warnings,
    )

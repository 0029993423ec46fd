"""What a reader of a stream remembers of the events so far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2psim.network.events import LEARNER, NONE
from p2psim.network.links import Links
from p2psim.network.resends import FreshAnswers, Must, Resending, Retries


@dataclass
class Heard:
    """A delivery from agent to agent, and what it may still cause."""

    agent: int
    sender: int
    version: int
    is_answer: bool
    answers: bool = True
    commits: bool = True


class Seen:
    """The events so far, as far as they bear on later ones; the parameters are those of `EventChecker`."""

    def __init__(
        self,
        links: Links,
        limits: np.ndarray | None,
        goes_on: bool,
        by_edge: bool,
        resending: Resending,
    ):
        self.links = links
        self.goes_on = goes_on
        self.by_edge = by_edge
        self.limits = limits
        self.near = [set(links.of(agent).tolist()) for agent in range(links.agents)]
        self.seq = 0
        self.time = 0.0
        self.away: set[int] = set()
        # Messages that may still end, by seq of their send: (sender, receivers to come, version, release, answers).
        self.open: dict[int, tuple[int, set[int], int, int, bool]] = {}
        # What a later event may name as its cause, by seq: (kind, agent, peer, outcome, version, release).
        self.causes: dict[int, tuple[int, int, int, int, int, int]] = {}
        # What agents heard of each other at this moment, by seq of the delivery.
        self.heard: dict[int, Heard] = {}
        self.versions: dict[int, int] = {}
        self.releases = [0] * links.agents
        # The learner's last query to all, as long as no commit has closed its round.
        self.round = NONE
        self.retries, self.fresh = Retries(resending), FreshAnswers(resending)

    def is_spent(self, agent: int) -> bool:
        """Whether an agent may make no more releases."""
        return self.limits is not None and agent != LEARNER and self.releases[agent] >= self.limits[agent]

    def linked(self, agent: int, peer: int) -> bool:
        """Whether two are linked."""
        if agent == LEARNER:
            return 0 <= peer < self.links.agents
        return peer in self.near[agent]

    def make_release(self, must: Must, agent: int, release: int) -> None:
        """Check that an agent makes its next release, if it may."""
        if release == NONE and self.goes_on:
            must(self.limits is None or self.is_spent(agent), "it releases nothing, though it may")
            return
        must(release == self.releases[agent], f"its release should be number {self.releases[agent]}")
        self.releases[agent] += 1
        self.keep_limit(must, agent, release)

    def keep_limit(self, must: Must, agent: int, release: int) -> None:
        """Check that an agent does not exceed its limit."""
        if self.limits is not None:
            must(release < self.limits[agent], f"more than {self.limits[agent]} releases")

"""The order of what happens at one instant: a rule of the model, which every engine keeps.

What an event brings about at its own instant follows it at once, depth first. Appointments that are due at one instant
have their turns in the order of their keys: (class, agent, number, kind, peer). The page on events says it in words.

Keys of each class:

- ``LINKS``: links that come and go, all at once;
- ``PRESENCE``: the smallest agent of the group that leaves or comes back, and the number of its reason;
- ``CHANNEL``: the sender of a transmission that ends, or the receiver of a message that arrives; the number (seq) of
  the send; `AIRTIME` or `ARRIVAL`; of a transmission its first receiver;
- ``WAIT``: a wait that a message caused: who acts then; the number of that event; what for; the receiver of what is
  sent;
- ``REGULAR``: what happens at regular times: the learner, or who sends in a slot; the number of the poll, the round or
  the send; what it is; the receiver of what is sent;
- ``WAKE``: the agent;
- ``END``: the run ends after all else.
"""

from typing import Final

#: Classes of appointments.
LINKS, PRESENCE, WAIT, CHANNEL, REGULAR, WAKE, END = range(7)

#: Kinds of ``CHANNEL``.
AIRTIME, ARRIVAL = range(2)

#: Kinds of ``WAIT`` and ``REGULAR``: what is waited for. ``OTHER`` is for exchanges of one's own.
DEADLINE, SLOT, POLL, ROUND, RESPONSE, SERVICE, SENSING, RESENDING, COMPUTING, OTHER = range(10)

#: Class, agent, number, kind, peer; what is left out at the end is 0.
Key = tuple[int, ...]

#: Of the end of a run.
AT_END: Final[Key] = (END,)

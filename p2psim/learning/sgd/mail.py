"""Messages on their way in a planner: the slot that each carries, until it has ended at all of its receivers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from p2psim.core.compiled import njit

#: Columns of `Mail.places`: number of the send (−1 for none), slot, and receivers that are waited for.
_SEND, _SLOT, _LEFT = 0, 1, 2


class Mail(NamedTuple):
    """Messages by the numbers of their sends.

    Attributes
    ----------
    places : ndarray of int64, shape (places, 3)
        A power of two of them; message s lies at s mod places.
    times : ndarray, shape (places,)
        When each was sent.
    """

    places: np.ndarray
    times: np.ndarray

    @classmethod
    def empty(cls, places: int = 1024) -> Mail:
        """Nothing on its way."""
        return cls(np.full((places, 3), -1, np.int64), np.zeros(places))

    def doubled(self) -> Mail:
        """The same with twice as many places."""
        larger = Mail.empty(2 * len(self.places))
        known = np.flatnonzero(self.places[:, _SEND] >= 0)
        new = self.places[known, _SEND] % len(larger.places)
        larger.places[new], larger.times[new] = self.places[known], self.times[known]
        return larger


@njit(forceinline=True)
def is_free(mail, send):  # type: ignore[no-untyped-def]
    """Whether there is a place for a message."""
    return mail.places[send & (mail.places.shape[0] - 1), _SEND] < 0


@njit(forceinline=True)
def post(mail, send, slot, receivers, time):  # type: ignore[no-untyped-def]
    """Note a message, whose slot the caller has held for it."""
    place = send & (mail.places.shape[0] - 1)
    mail.places[place, _SEND], mail.places[place, _SLOT], mail.places[place, _LEFT] = send, slot, receivers
    mail.times[place] = time


@njit(forceinline=True)
def arrive(mail, send):  # type: ignore[no-untyped-def]
    """Slot of a message that ends at a receiver (−1: none), when it was sent, and whether that was the last one."""
    place = send & (mail.places.shape[0] - 1)
    if send < 0 or mail.places[place, _SEND] != send:
        return -1, 0.0, False
    mail.places[place, _LEFT] -= 1
    is_last = mail.places[place, _LEFT] == 0
    if is_last:
        mail.places[place, _SEND] = -1
    return mail.places[place, _SLOT], mail.times[place], is_last

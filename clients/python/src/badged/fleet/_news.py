# SPDX-License-Identifier: Apache-2.0
"""What a message of a host means for a consumer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class News:
    """What a consumer has learnt about a host."""

    host: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arrival(News):
    """An event that has not come before: a tap (`credential`) or the opening of a door (`opening`)."""

    stream: str
    epoch: str
    sequence: int
    #: All members of the event, also those that this package does not know.
    content: Mapping[str, Any]
    #: Milliseconds since 1970, corrected by the clock of the host where that is known; None: the event has no time.
    time: int | None = None
    #: The boot of the host, and the milliseconds since then.
    boot: str | None = None
    uptime: int | None = None
    #: The number was in a hole, or is older than the first event of this consumer.
    is_late: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hole(News):
    """Events with these numbers are missing. A hole is known by `host`, `stream`, `epoch` and `first`."""

    stream: str
    epoch: str
    first: int
    last: int
    #: The reason of the gap that reports the loss; None: the host has not reported one, so the broker lost the events.
    reason: str | None = None

    @property
    def count(self) -> int:
        return self.last - self.first + 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Withdrawn(News):
    """A reported hole is over: its events came, or their reason is known. New holes follow for what is left of it."""

    hole: Hole


@dataclasses.dataclass(frozen=True, kw_only=True)
class Loss(News):
    """A loss of events that never had a number. The sum over `missed` counts each event once."""

    stream: str
    epoch: str
    #: The event that reports the loss.
    sequence: int
    reason: str
    #: How many events are lost; None: nobody knows.
    missed: int | None = None
    #: Milliseconds since 1970.
    since: int | None = None
    until: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Presence(News):
    """A host came or went, or has a new session."""

    is_online: bool
    session: str | None = None
    #: Why it is offline: what the host says (`connectionLost`, `stopped`, `restarting`), `expired` if it was silent for
    #: 2.5 heartbeats, `forgotten` if its state was removed.
    reason: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Document(News):
    """The content of `state`, `health`, `readers` or `sightings` that counts now; None: no content counts any more."""

    kind: str
    content: Mapping[str, Any] | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Clock(News):
    """In this boot of the host, `uptime` and `offset` give the time, in milliseconds since 1970."""

    boot: str
    offset: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reset(News):
    """What was saved of a host cannot be used, and its history begins anew: events may come once more, and holes that
    were reported before stay open."""

    text: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Malformed(News):
    """A message that does not follow docs/fleet.md. It has changed nothing. `host` is empty if the topic has none."""

    topic: str
    text: str

# SPDX-License-Identifier: Apache-2.0
"""Door readers: docs/protocol/door-readers.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._records import Event, Message, Record

__all__ = [
    "Advert",
    "AskOpen",
    "AutoOpen",
    "ClosestDoorReader",
    "DoorReader",
    "DoorReaderFound",
    "DoorReaderList",
    "DoorReaderLost",
    "Opening",
    "OpeningReport",
    "OpeningResult",
    "Openings",
    "ReaderKey",
    "ReaderKeys",
    "Scan",
    "Timeouts",
]


@dataclass(frozen=True, kw_only=True)
class DoorReader(Record):
    """A door reader. It is not authenticated: anybody can send its advertisements."""

    id: str
    profile: str
    name: str | None = None
    lock_service_codes: tuple[int, ...] = ()
    lock_service_code: int | None = None
    beacon: Mapping[str, Any] | None = None
    address: str = ""
    address_type: str = ""
    adapter: str | None = None
    opening_types: tuple[str, ...] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    in_range: Mapping[str, bool] = field(default_factory=dict)
    rssi: Mapping[str, Any] = field(default_factory=dict)
    estimate: Mapping[str, Any] | None = None
    active: bool = False
    cooling_down: bool = False
    unavailable: bool = False
    first_seen: int = 0
    last_seen: int = 0
    adverts: int = 0
    interval_ms: Any = None
    tx_power: int | None = None
    trust: str = ""


@dataclass(frozen=True, kw_only=True)
class Scan(Event, msg="SCAN"):
    """Whether this client scans, and whether the radio listens. `error` says what the radio lacks."""

    wanted: bool
    radio: bool
    backend: str | None = None
    adapters: tuple[Mapping[str, Any], ...] = ()
    last_advert_ago: int | None = None
    error: str | None = None
    error_ago: int | None = None


@dataclass(frozen=True, kw_only=True)
class DoorReaderFound(Event, msg="DOOR_READER"):
    """A door reader appeared or changed."""

    reader: DoorReader


@dataclass(frozen=True, kw_only=True)
class DoorReaderLost(Event, msg="DOOR_READER_LOST"):
    """A door reader is not received any more."""

    id: str


@dataclass(frozen=True, kw_only=True)
class DoorReaderList(Message, msg="DOOR_READER_LIST"):
    """The door readers that are near, strongest first."""

    readers: tuple[DoorReader, ...]


@dataclass(frozen=True, kw_only=True)
class ClosestDoorReader(Message, msg="CLOSEST_DOOR_READER"):
    """The reader that `trigger` would open, or None and the reason."""

    reader: DoorReader | None = None
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Advert(Event, msg="ADVERT"):
    """An advertisement."""

    adapter: str
    address: str
    address_type: str
    data: str
    rssi: int
    scan_response: bool = False
    lost: int = 0


@dataclass(frozen=True, kw_only=True)
class Opening(Event, msg="OPENING"):
    """A state of an opening: connecting, connected or authenticating."""

    token: int
    reader: Any
    opening_type: str
    state: str


@dataclass(frozen=True, kw_only=True)
class OpeningResult(Event, msg="OPENING_RESULT"):
    """The end of an opening. `access_decision` is a hint: the answer of the reader is not authenticated."""

    status: str
    token: int | None = None
    reader: Any = None
    duration_ms: int | None = None
    payload: str | None = None
    access_decision: str | None = None
    key: str | None = None
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Timeouts(Message, msg="TIMEOUTS"):
    """The time limits of openings, in milliseconds."""

    fragment_ms: int
    apdu_ms: int
    connect_ms: int


@dataclass(frozen=True, kw_only=True)
class AutoOpen(Event, msg="AUTO_OPEN"):
    """How readers are opened without a command; `error` says why this has ended."""

    mode: str
    opening_type: str | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class AskOpen(Event, msg="ASK_OPEN"):
    """A reader has come into range; `allow_open` opens it."""

    token: int
    reader: Any
    opening_type: str
    expires_ms: int


@dataclass(frozen=True, kw_only=True)
class Openings(Event, msg="OPENINGS"):
    """Whether this client receives `OpeningReport`."""

    watching: bool
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class OpeningReport(Event, msg="OPENING_REPORT"):
    """The opening of a door reader by any client has ended. `time` is in milliseconds since 1970."""

    number: int
    time: int
    reader: str
    opening_type: str
    status: str
    access_decision: str | None = None
    duration_ms: int | None = None
    key: str | None = None
    user: int | None = None


@dataclass(frozen=True, kw_only=True)
class ReaderKey(Record):
    """An identity resolving key of a door reader. `order` of its bytes is None until it has resolved an address."""

    name: str
    order: str | None = None


@dataclass(frozen=True, kw_only=True)
class ReaderKeys(Message, msg="READER_KEYS"):
    """The names of the identity resolving keys."""

    keys: tuple[ReaderKey, ...] = ()
    error: str | None = None

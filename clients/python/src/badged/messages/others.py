# SPDX-License-Identifier: Apache-2.0
"""Credentials, readers over the network, and browsers: docs/protocol/."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._records import Event, Message, Record, Step, hidden

__all__ = [
    "Activation",
    "Challenged",
    "Credential",
    "Credentials",
    "DoorPanel",
    "DoorPanels",
    "OpenPairing",
    "PairReader",
    "PairingCode",
    "Remote",
    "RemoteDevice",
    "Reported",
    "ShowUI",
    "Tag",
    "UserInterface",
]


@dataclass(frozen=True, kw_only=True)
class Credentials(Event, msg="CREDENTIALS"):
    """Whether this client receives `Credential`."""

    watching: bool
    validated: bool = False
    issuers: int = 0
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Tag(Record):
    """The number of a card without a credential, which anybody can copy. `ndef` is what is written in it."""

    uid: str
    type: str
    random: bool = False
    ndef: tuple[Mapping[str, Any], ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Credential(Event, msg="CREDENTIAL"):
    """A card or phone was put on a reader. Without `verified` it has shown no credential, and `reason` says why."""

    reader: str
    protocol: str
    verified: bool
    reason: str | None = None
    phase: str | None = None
    numbers: Mapping[str, str] = field(default_factory=dict)
    public_key: str | None = None
    certificate: Mapping[str, Any] | None = None
    transaction: str | None = None
    number: int | None = None
    time: int | None = None
    listed: bool | None = None
    tag: Tag | None = None


@dataclass(frozen=True, kw_only=True)
class DoorPanels(Event, msg="DOOR_PANELS"):
    """Whether this client receives `DoorPanel`."""

    watching: bool = False
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class DoorPanel(Event, msg="DOOR_PANEL"):
    """What a door panel shows at its reader. `beep` is a sound that was ordered now."""

    panel: str
    link: str
    leds: tuple[Mapping[str, Any], ...] = ()
    text: tuple[str, ...] = ()
    outputs: tuple[bool, ...] = ()
    beep: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Reported(Message, msg="REPORTED"):
    """The answer to a report. `number` is that of the tap."""

    number: int | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Challenged(Message, msg="CHALLENGED"):
    """What the card of a tap has signed for a door panel, in hexadecimal."""

    number: int | None = None
    public_key: str | None = None
    signature: str | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class RemoteDevice(Record):
    """A device with which readers are shared. Only the fingerprint tells devices apart."""

    fingerprint: str
    name: str = ""
    paired: bool = False
    connected: bool = False
    pairing: bool = False
    refuses: bool = False


@dataclass(frozen=True, kw_only=True)
class Remote(Event, msg="REMOTE"):
    """The devices with which readers are shared. `error` says what does not work."""

    enabled: bool
    share: bool
    fingerprint: str | None = None
    lenders: tuple[RemoteDevice, ...] = ()
    borrowers: tuple[RemoteDevice, ...] = ()
    used: tuple[Any, ...] = ()
    pairing: bool = False
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class PairReader(Step, msg="PAIR_READER"):
    """A pairing with a device that lends its reader has begun, or has ended: then it has `success`."""

    success: bool | None = None
    error: str | None = None
    fingerprint: str | None = None
    name: str | None = None


@dataclass(frozen=True, kw_only=True)
class OpenPairing(Step, msg="OPEN_PAIRING"):
    """The pairing mode of this host has begun, or has ended: then it has `success`."""

    success: bool | None = None
    error: str | None = None
    fingerprint: str | None = None
    name: str | None = None


@dataclass(frozen=True, kw_only=True)
class PairingCode(Step, msg="PAIRING_CODE"):
    """The digits to type at the other device, and the fingerprint of this host."""

    code: str = hidden()
    fingerprint: str = ""
    seconds: int | None = None


@dataclass(frozen=True, kw_only=True)
class UserInterface(Event, msg="USER_INTERFACE"):
    """Whether this client is the user interface of the browsers of its user."""

    active: bool
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class ShowUI(Event, msg="SHOW_UI"):
    """A browser asks the user interface to show itself."""

    module: str = ""


@dataclass(frozen=True, kw_only=True)
class Activation(Message, msg="ACTIVATION"):
    """The end of ACTIVATE, which only connections of the browser port may send."""

    accepted: bool | None = None
    url: str | None = None
    error: str | None = None

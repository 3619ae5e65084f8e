# SPDX-License-Identifier: Apache-2.0
"""Keys for doors and one-time codes: docs/protocol/keys.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._records import Event, Message, hidden, named

__all__ = [
    "Data",
    "Endpoint",
    "EndpointSetup",
    "EndpointTerminated",
    "EndpointUpdated",
    "Key",
    "KeyDeleted",
    "KeyExport",
    "Keys",
    "LastAuth",
    "OneTimeCode",
    "OneTimeCodeCounter",
    "SiteImported",
    "Started",
    "WalletBlob",
    "WalletEligible",
    "WalletError",
    "WalletPending",
    "WalletSaved",
]


@dataclass(frozen=True, kw_only=True)
class Key(Message, msg="KEY"):
    """A key: a key pair for doors (`protocol` pkoc), or a secret for one-time codes (otp)."""

    id: str
    protocol: str
    label: str = ""
    issuer: str = ""
    card_number: str = ""
    begin_date: str | None = None
    end_date: str | None = None
    expired: bool = False
    active: bool = False
    revoked: bool = False
    supports_otp: bool = named("supportsOTP", False)
    pending: bool = False
    pending_until: str | None = None
    origin: str = ""
    protection: str = ""
    public_key: str | None = None
    thumbprint: str | None = None
    numbers: tuple[Mapping[str, Any], ...] = ()
    sites: tuple[Mapping[str, Any], ...] = ()
    otp: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Started(Message, msg="STARTED"):
    """Whether the endpoint is set up."""

    set_up: bool


@dataclass(frozen=True, kw_only=True)
class Endpoint(Message, msg="ENDPOINT"):
    """The vault of this user."""

    set_up: bool
    id: str | None = None
    environment: str = ""
    keys: int = 0
    maximum_keys: int = 0
    bytes_used: int = 0
    bytes_per_key: int = 0
    last_sync: str | None = None
    sealed: bool = False
    storage: str | None = None


@dataclass(frozen=True, kw_only=True)
class EndpointSetup(Message, msg="ENDPOINT_SETUP"):
    """The endpoint is set up; `key` is that of the invitation."""

    ok: bool
    id: str
    key: Any = None


@dataclass(frozen=True, kw_only=True)
class EndpointUpdated(Message, msg="ENDPOINT_UPDATED"):
    """How many keys the issuer has issued, updated and revoked."""

    issued: int
    updated: int
    revoked: int
    duration_ms: int = 0


@dataclass(frozen=True, kw_only=True)
class EndpointTerminated(Message, msg="ENDPOINT_TERMINATED"):
    """The endpoint and its keys are removed."""


@dataclass(frozen=True, kw_only=True)
class Keys(Message, msg="KEYS"):
    """The keys of this user, and the ids of those whose record is damaged."""

    keys: tuple[Key, ...]
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class KeyDeleted(Message, msg="KEY_DELETED"):
    """The key with this id is deleted."""

    id: str


@dataclass(frozen=True, kw_only=True)
class KeyExport(Message, msg="KEY_EXPORT"):
    """The public part of a key in several forms; `qr` is the text for a QR code."""

    id: str
    public_key: str
    key_type: str = ""
    der: str = ""
    pem: str = ""
    thumbprint: str = ""
    numbers: tuple[Mapping[str, Any], ...] = ()
    qr: str = ""


@dataclass(frozen=True, kw_only=True)
class SiteImported(Message, msg="SITE_IMPORTED"):
    """A key knows a site now. Compare `fingerprint` with what the site says."""

    id: str
    site_id: str
    reader: str
    public_key: str
    fingerprint: str


@dataclass(frozen=True, kw_only=True)
class LastAuth(Message, msg="LAST_AUTH"):
    """Which key was used last."""

    key: str | None
    counter: int = 0
    modified: bool = False
    time: str | None = None


@dataclass(frozen=True, kw_only=True)
class OneTimeCode(Message, msg="OTP"):
    """A one-time code."""

    id: str
    otp: str = hidden()
    digits: int = 0
    counter: int | None = None
    step: int | None = None
    seconds_left: int | None = None


@dataclass(frozen=True, kw_only=True)
class OneTimeCodeCounter(Message, msg="OTP_COUNTER"):
    """The counter of the next code."""

    id: str
    counter: int


@dataclass(frozen=True, kw_only=True)
class Data(Message, msg="DATA"):
    """A data object of a key, in hexadecimal; None if there is none."""

    oid: str
    tag: str
    data: str | None = None


@dataclass(frozen=True, kw_only=True)
class WalletEligible(Message, msg="WALLET_ELIGIBLE"):
    """Whether passes can be made."""

    eligible: bool
    protocols: tuple[str, ...] = ()
    protection: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WalletBlob(Message, msg="WALLET_BLOB"):
    """What a backend needs to issue a pass for the new key."""

    key: str
    blob: str
    expires: str


@dataclass(frozen=True, kw_only=True)
class WalletPending(Event, msg="WALLET_PENDING"):
    """badged asks the issuer for the pass; `WalletSaved` is the answer."""


@dataclass(frozen=True, kw_only=True)
class WalletSaved(Message, msg="WALLET_SAVED"):
    """The pass is saved."""

    reason: str
    key: Key


@dataclass(frozen=True, kw_only=True)
class WalletError(Message, msg="WALLET_ERROR"):
    """A command of passes has failed. The methods raise it as a `CommandError`."""

    reason: str
    error: str | None = None
    description: str | None = None

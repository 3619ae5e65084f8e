# SPDX-License-Identifier: Apache-2.0
"""M-Pin: docs/protocol/mpin.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._records import Record, Step, hidden, named

__all__ = ["MPinResult", "MPinStarted", "MPinUser"]


@dataclass(frozen=True, kw_only=True)
class MPinUser(Record):
    """An identity at a backend."""

    user_id: str
    state: str
    backend: str | None = None
    rps_prefix: str | None = None
    device_name: str | None = None
    mpin_id: str | None = None
    registration_expiration: Any = None
    pin_length: int | None = None
    key_uid: str | None = named("keyUID", None)
    customer_id: str | None = None
    can_sign: bool | None = None
    second_factor: bool | None = None
    signer_second_factor: bool | None = None


@dataclass(frozen=True, kw_only=True)
class MPinStarted(Step, msg="MPIN_STARTED"):
    """A workflow of M-Pin has begun."""

    operation: str


@dataclass(frozen=True, kw_only=True)
class MPinResult(Step, msg="MPIN_RESULT"):
    """The answer to a command of M-Pin, and the end of its workflows. What the command returns is in one member."""

    operation: str
    status: int
    status_code: str = named("statusCodeAsString")
    error_message: str = ""
    user: MPinUser | None = None
    users: tuple[MPinUser, ...] = ()
    backends: tuple[Mapping[str, Any], ...] = ()
    value: Any = None
    auth_result_data: str | None = hidden(None)
    can_logout: bool | None = None
    authz_code: str | None = hidden(None)
    access_code: str | None = hidden(None)
    service_details: Mapping[str, Any] | None = None
    session_details: Mapping[str, Any] | None = None
    signature: Mapping[str, Any] | None = None
    otp: Mapping[str, Any] | None = hidden(None)
    verified: bool | None = None

# SPDX-License-Identifier: Apache-2.0
"""Online authentication and PIN change with the German eID card: docs/protocol/eid.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._records import Message, Prompt, Record, Step

__all__ = [
    "AccessRights",
    "Auth",
    "AuthResult",
    "Certificate",
    "CertificateDescription",
    "ChangePin",
    "Rights",
    "Validity",
]


@dataclass(frozen=True, kw_only=True)
class Rights(Record):
    """Names of rights: those that the service needs, those that the user may refuse, and those in effect."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    effective: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AccessRights(Prompt, msg="ACCESS_RIGHTS"):
    """The request of the service. Before `accept` badged sends nothing to any card."""

    chat: Rights
    aux: Mapping[str, Any] = field(default_factory=dict)
    transaction_info: str | None = None

    def accept(self, optional: Iterable[str] | None = None) -> None:
        """Agrees to the required rights and to these optional ones; None means all optional rights.

        A right that is not optional is a `ValueError`. ACCEPT is sent after badged has confirmed the choice.
        """
        if optional is None:
            self._reply("ACCEPT")
            return
        chosen = list(optional)
        for right in chosen:
            if right not in self.chat.optional:
                raise ValueError(f"{right} is not an optional right of this service")
        # Without optional rights badged refuses the choice, and there is nothing to choose.
        if self.chat.optional:
            self._reply("SET_ACCESS_RIGHTS", {"chat": chosen})
        else:
            self._reply("ACCEPT")

    def take(self, value: object) -> bool:
        if value is None or value is False:
            return False
        if value is True:
            self.accept()
        elif isinstance(value, Iterable) and not isinstance(value, str):
            self.accept([str(right) for right in value])
        else:
            raise TypeError("the answer to ACCESS_RIGHTS is True, or the names of optional rights")
        return True


@dataclass(frozen=True, kw_only=True)
class CertificateDescription(Record):
    """Who asks, and for what purpose."""

    subject_name: str = ""
    subject_url: str = ""
    issuer_name: str = ""
    issuer_url: str = ""
    terms_of_usage: str = ""
    purpose: str = ""


@dataclass(frozen=True, kw_only=True)
class Validity(Record):
    """The first and the last day of a certificate, as yyyy-MM-dd."""

    effective_date: str = ""
    expiration_date: str = ""


@dataclass(frozen=True, kw_only=True)
class Certificate(Message, msg="CERTIFICATE"):
    """The certificate of the service."""

    description: CertificateDescription
    validity: Validity


@dataclass(frozen=True, kw_only=True)
class AuthResult(Record):
    """How an authentication ended. After success only `major` has a value."""

    major: str
    minor: str | None = None
    description: str | None = None
    message: str | None = None
    language: str | None = None
    reason: str | None = None
    network: str | None = None


@dataclass(frozen=True, kw_only=True)
class Auth(Step, msg="AUTH"):
    """An authentication has begun, or has ended: then it has `result`.

    `url` is where the browser continues. `sent` (none, possible, read) and `rights` say what the service may have.
    """

    error: str | None = None
    result: AuthResult | None = None
    url: str | None = None
    sent: str | None = None
    rights: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ChangePin(Step, msg="CHANGE_PIN"):
    """A PIN change has begun, or has ended: then it has `success`."""

    error: str | None = None
    success: bool | None = None
    reason: str | None = None

# SPDX-License-Identifier: Apache-2.0
"""Mobile documents: docs/protocol/mdoc.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._records import Message, Record, Step, hidden
from .documents import DocumentCheck

__all__ = ["Mdoc", "MdocAge", "MdocAnchors", "MdocDocument"]


@dataclass(frozen=True, kw_only=True)
class MdocAge(Record):
    """The answer to `age_over`: `yes` or `no` if a genuine document proves it, else `unknown`."""

    over: int
    answer: str


@dataclass(frozen=True, kw_only=True)
class MdocDocument(Record):
    """A document that a phone has shown. The data of its holder are not in the repr.

    `items` has the elements of each namespace that were proven or not refused; `withheld` the names of those that the
    holder did not give; `unasked` of those that nobody asked for.
    """

    doc_type: str
    verdict: str
    issuer: str | None = None
    valid_until: str | None = None
    items: Mapping[str, Mapping[str, Any]] = hidden(None)
    withheld: tuple[str, ...] = ()
    unasked: tuple[str, ...] = ()
    checks: Mapping[str, DocumentCheck] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Mdoc(Step, msg="MDOC"):
    """A reading of a phone has begun, or has ended: then it has `success`.

    `verdict` is that of the worst document: `genuine`, `unverified` or `suspect`.
    """

    success: bool | None = None
    error: str | None = None
    message: str | None = None
    verdict: str | None = None
    engagement: str | None = None
    transport: str | None = None
    reader: str | None = None
    age: MdocAge | None = None
    documents: tuple[MdocDocument, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CardIdentity(Message, msg="CARD_IDENTITY"):
    """Who a card is: answer to reset, number, applications that have answered. `fault`: why it was not asked."""

    name: str
    atr: str | None = None
    uid: str | None = None
    applications: tuple[Mapping[str, Any], ...] = ()
    fault: str | None = None


@dataclass(frozen=True, kw_only=True)
class CardRecording(Message, msg="CARD_RECORDING"):
    """What a card says before any secret, as lines. `fault`: why they end early."""

    name: str
    recording: str
    fault: str | None = None


@dataclass(frozen=True, kw_only=True)
class MdocAnchors(Message, msg="MDOC_ANCHORS"):
    """The trusted authorities of mobile documents. `doc_types` are those with authorities of their own."""

    folder: str
    authorities: int
    countries: tuple[str, ...] = ()
    doc_types: tuple[str, ...] = ()
    links: int = 0
    crls: int = 0
    status_lists: int = 0
    newest: str | None = None
    warnings: tuple[str, ...] = ()

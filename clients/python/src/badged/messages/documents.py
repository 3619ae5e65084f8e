# SPDX-License-Identifier: Apache-2.0
"""Electronic documents: docs/protocol/documents.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._records import Message, Record, Step, hidden
from .prompts import SecretPrompt

__all__ = [
    "Document",
    "DocumentAnchors",
    "DocumentCheck",
    "DocumentFile",
    "DocumentGroup",
    "DocumentImage",
    "EnterMrz",
]


@dataclass(frozen=True, kw_only=True)
class EnterMrz(SecretPrompt, msg="ENTER_MRZ"):
    """Asks for the lines of the machine readable zone, or for the CAN if `passwords` has `can`.

    `error` is `malformed` for a value that was not sent to the document, and `wrongPassword` for one that the document
    has refused; `message` says more.
    """

    LABEL = "machine readable zone"
    COMMAND = "SET_MRZ"

    passwords: tuple[str, ...] = ()
    message: str | None = None

    def answer_can(self, secret: bytearray) -> None:
        """Answers with the CAN instead: six digits, which are wiped."""
        self._reply("SET_CAN", secret=secret)


@dataclass(frozen=True, kw_only=True)
class DocumentCheck(Record):
    """How a check ended: `passed`, `failed`, `absent` or `notDone`, and why. `raw` has what only one check has."""

    result: str
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class DocumentGroup(Record):
    """A data group. `data`, in base64, is there if the command asked for it with `raw`."""

    group: int
    state: str
    bytes: int | None = None
    data: str | None = hidden(None)


@dataclass(frozen=True, kw_only=True)
class DocumentFile(Record):
    """A file that is no data group, such as `EF.SOD`, in base64. It is there if the command asked for it with `raw`."""

    file: str
    bytes: int | None = None
    data: str = hidden("")


@dataclass(frozen=True, kw_only=True)
class DocumentImage(Record):
    """A picture as the chip has it, in base64."""

    format: str
    width: int | None = None
    height: int | None = None
    data: str = hidden("")


@dataclass(frozen=True, kw_only=True)
class Document(Step, msg="DOCUMENT"):
    """A reading has begun, or has ended: then it has `success`. The data of the holder are not in the repr.

    `verdict` is `genuine`, `genuineCopyable`, `unverified` or `suspect`.
    """

    success: bool | None = None
    error: str | None = None
    message: str | None = None
    reader: str | None = None
    verdict: str | None = None
    access: Mapping[str, str] = field(default_factory=dict)
    document: Mapping[str, Any] | None = hidden(None)
    person: Mapping[str, Any] | None = hidden(None)
    issuance: Mapping[str, Any] | None = hidden(None)
    notify: tuple[Any, ...] = hidden(())
    portrait: DocumentImage | None = None
    signature: DocumentImage | None = None
    groups: tuple[DocumentGroup, ...] = ()
    files: tuple[DocumentFile, ...] = ()
    checks: Mapping[str, DocumentCheck] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DocumentAnchors(Message, msg="DOCUMENT_ANCHORS"):
    """The trusted authorities of documents."""

    folder: str
    authorities: int
    countries: tuple[str, ...] = ()
    links: int = 0
    crls: int = 0
    lists: tuple[str, ...] = ()
    newest: str | None = None
    warnings: tuple[str, ...] = ()

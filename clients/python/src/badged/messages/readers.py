# SPDX-License-Identifier: Apache-2.0
"""Readers and cards: docs/protocol/readers.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._records import Event, Message, Prompt, Record, Step, named

__all__ = [
    "Card",
    "CredentialCard",
    "DocumentCard",
    "EIDCard",
    "InsertCard",
    "Keycard",
    "Pause",
    "Reader",
    "ReaderList",
]


@dataclass(frozen=True, kw_only=True)
class Card(Record):
    """A card in a reader. `kind` is None for a card that badged does not recognise."""

    kind: str | None = None

    @classmethod
    def choose(cls, raw: Mapping[str, Any]) -> type[Card]:
        kinds: dict[object, type[Card]] = {"eid": EIDCard, "keycard": Keycard}
        kinds |= {"pkoc": CredentialCard, "aliro": CredentialCard}
        kinds["document"] = DocumentCard
        kind = raw.get("kind")
        return kinds.get(kind, Card) if isinstance(kind, str) else Card


@dataclass(frozen=True, kw_only=True)
class EIDCard(Card):
    """A German eID card."""

    retry_counter: int
    deactivated: bool = False
    inoperative: bool = False


@dataclass(frozen=True, kw_only=True)
class Keycard(Card):
    """A wallet card."""

    version: str | None = None
    initialised: bool = False
    key_uid: str | None = named("keyUID", None)
    pin_tries: int | None = None
    puk_tries: int | None = None
    paired: bool | None = None
    trusted: bool | None = None
    supported: bool = True
    used_slots: int | None = None
    free_slots: int | None = None


@dataclass(frozen=True, kw_only=True)
class CredentialCard(Card):
    """A card or phone with a credential for doors, of the kind pkoc or aliro."""

    versions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DocumentCard(Card):
    """A passport or another electronic document; `access` is how it can be opened: pace, bac."""

    access: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Reader(Event, msg="READER"):
    """A reader. When it is removed, `attached` is False, and the other members have no meaning."""

    name: str
    attached: bool = False
    keypad: bool = False
    driver: str | None = None
    remote: bool = False
    insertable: bool = False
    busy: bool = False
    card: Card | None = None


@dataclass(frozen=True, kw_only=True)
class ReaderList(Message, msg="READER_LIST"):
    """All readers, sorted by name."""

    readers: tuple[Reader, ...] = ()

    @classmethod
    def decode(cls, raw: object, where: str = "") -> ReaderList:
        # At API level 1 the array is called `reader`.
        if isinstance(raw, dict) and "readers" not in raw and "reader" in raw:
            raw = {**raw, "readers": raw["reader"]}
        return super().decode(raw, where)


@dataclass(frozen=True, kw_only=True)
class InsertCard(Step, msg="INSERT_CARD"):
    """The workflow waits for a card. `error` says why the card in `reader` cannot be used, and what helps."""

    error: str | None = None
    reader: str | None = None


@dataclass(frozen=True, kw_only=True)
class Pause(Prompt, msg="PAUSE"):
    """The card was lost repeatedly. The user should place it better; then `accept` goes on."""

    cause: str = ""

    def accept(self) -> None:
        """Sends CONTINUE."""
        self._reply("CONTINUE")

    def take(self, value: object) -> bool:
        if value is True:
            self.accept()
        return value is True

# SPDX-License-Identifier: Apache-2.0
"""Commands of docs/protocol/mdoc.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._both import both
from .._calls import Calls, failed
from .._core import Raw
from .._workflow import Dialogue, starts
from ..messages import CardIdentity, CardRecording, Mdoc, MdocAnchors


def finish_read_mdoc(raw: Raw) -> Mdoc | None:
    """The result of MDOC; None if the reading has just begun."""
    mdoc = Mdoc.decode(raw, "MDOC")
    if mdoc.success is False:
        raise failed(raw, mdoc.error, mdoc.message or f"no phone was read: {mdoc.error}")
    return mdoc if mdoc.success else None


class MdocCommands(Calls):
    @starts
    def run_read_mdoc(
        self,
        *,
        age_over: int | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        reader: str | None = None,
        engagement: str | None = None,
        transports: Sequence[str] | None = None,
        identity: str | None = None,
        timeout: int | None = None,
        raw: bool | None = None,
        status: bool = True,
    ) -> Dialogue[Mdoc]:
        """Reads mobile documents from a phone: `age_over=18` asks whether its holder is over 18, and nothing else.

        `documents` is a list of {"docType": ..., "items": {namespace: [{"name": ..., "retain": False}]}}. `engagement`
        is the text of a QR code. A document that is not believed is a result, too.
        """
        members: dict[str, Any] = {"documents": documents, "engagement": engagement, "transports": transports}
        members |= {
            "reader": reader,
            "identity": identity,
            "timeout": timeout,
            "raw": raw,
            "status": status,
            "ageOver": age_over,
        }
        return self._dialogue("RUN_READ_MDOC", members, "MDOC", finish_read_mdoc)

    #: The same under the name of what it does.
    read_mdoc = run_read_mdoc

    @both
    async def get_mdoc_anchors(self) -> MdocAnchors:
        """The trusted authorities of mobile documents."""
        return await self._ask("GET_MDOC_ANCHORS", MdocAnchors)

    @both
    async def identify_card(self, name: str) -> CardIdentity:
        """Asks the card in the reader `name` who it is."""
        return await self._ask("IDENTIFY_CARD", CardIdentity, {"name": name})

    @both
    async def record_card(self, name: str, *, unchanged: bool = False, board: bool = False) -> CardRecording:
        """Records what the card in the reader `name` says before any secret.

        `unchanged` keeps numbers and the data of the holder: only for a card with made-up data.
        With `board` it records the NFC board itself, which is opened anew and away for some seconds.
        """
        members = {"name": name} | ({"unchanged": True} if unchanged else {}) | ({"board": True} if board else {})
        return await self._ask("RECORD_CARD", CardRecording, members)

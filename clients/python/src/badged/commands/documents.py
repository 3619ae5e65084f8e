# SPDX-License-Identifier: Apache-2.0
"""Commands of docs/protocol/documents.md."""

from __future__ import annotations

from collections.abc import Sequence

from .._both import both
from .._calls import Calls, failed
from .._core import Raw
from .._workflow import Dialogue, starts
from ..messages import Document, DocumentAnchors


def finish_read_document(raw: Raw) -> Document | None:
    """The result of DOCUMENT; None if the reading has just begun."""
    document = Document.decode(raw, "DOCUMENT")
    if document.success is False:
        raise failed(raw, document.error, document.message or f"the document was not read: {document.error}")
    return document if document.success else None


class DocumentCommands(Calls):
    @starts
    def run_read_document(
        self,
        *,
        reader: str | None = None,
        groups: Sequence[int] | None = None,
        portrait: bool | None = None,
        raw: bool | None = None,
        allow_bac: str | None = None,
        status: bool = True,
    ) -> Dialogue[Document]:
        """Reads a passport or another electronic document. A document that is not believed is a result, too."""
        members = {"reader": reader, "groups": groups, "portrait": portrait, "raw": raw, "status": status}
        return self._dialogue("RUN_READ_DOCUMENT", {**members, "allowBAC": allow_bac}, "DOCUMENT", finish_read_document)

    #: The same under the name of what it does.
    read_document = run_read_document

    @both
    async def get_document_anchors(self) -> DocumentAnchors:
        """The trusted authorities of documents."""
        return await self._ask("GET_DOCUMENT_ANCHORS", DocumentAnchors)

# SPDX-License-Identifier: Apache-2.0
"""Commands that belong to no feature, and those of readers: docs/protocol.md, docs/protocol/readers.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .. import _secrets
from .._both import both
from .._calls import Calls
from .._core import without_none
from .._records import Message, parse
from ..messages import APILevel, Health, Info, Metrics, Reader, ReaderList, Status

M = TypeVar("M", bound=Message)


class CoreCommands(Calls):
    @both
    async def get_info(self) -> Info:
        """The versions of badged."""
        return await self._ask("GET_INFO", Info)

    @both
    async def get_api_level(self) -> APILevel:
        """The API level of this connection, and those that badged has."""
        return await self._ask("GET_API_LEVEL", APILevel)

    @both
    async def set_api_level(self, level: int) -> APILevel:
        """Sets the API level of this connection. This package is made for level 3, which a connection has at first."""
        return await self._ask("SET_API_LEVEL", APILevel, {"level": level})

    @both
    async def get_status(self) -> Status:
        """What the workflow of this connection does."""
        return await self._ask("GET_STATUS", Status)

    @both
    async def get_health(self) -> Health:
        """What works, and what does not."""
        return await self._ask("GET_HEALTH", Health)

    @both
    async def get_metrics(self) -> Metrics:
        """What badged has counted since it started."""
        return await self._ask("GET_METRICS", Metrics)

    @both
    async def get_reader(self, name: str) -> Reader:
        """The reader with this name. `attached` is False if there is none."""
        return await self._ask("GET_READER", Reader, {"name": name})

    @both
    async def get_reader_list(self) -> ReaderList:
        """All readers, sorted by name."""
        return await self._ask("GET_READER_LIST", ReaderList)

    # Any command, and waiting

    @both
    async def request(
        self, command: str, members: Mapping[str, Any] | None = None, secret: bytearray | None = None
    ) -> Message:
        """Sends any command, and returns its direct answer. A secret becomes the member `value`, and is wiped."""
        return parse(await self._raw(command, members or {}, secret))

    def send(self, command: str, members: Mapping[str, Any] | None = None, secret: bytearray | None = None) -> None:
        """Sends any command without waiting for an answer."""
        self._link.send(_secrets.line(command, without_none(members or {}), secret))

    @both
    async def wait_for(
        self, type_: type[M], matching: Callable[[M], bool] | None = None, timeout: float | None = None
    ) -> M:
        """Waits for an event of this type that matches, and takes it out of the events. Throws `NoAnswer`."""
        found: list[M] = []

        def wanted(message: Message) -> bool:
            return isinstance(message, type_) and (matching is None or matching(message))

        def ready() -> bool:
            event = self._link.core.next_event(wanted)
            if isinstance(event, type_):
                found.append(event)
            return bool(found)

        await self._link.wait(ready, timeout, type_.MSG or type_.__name__)
        return found[0]

    @both
    async def wait_for_card(
        self, kind: str | None = None, reader: str | None = None, timeout: float | None = None
    ) -> Reader:
        """Waits until there is a card, of this kind (such as eid) and in this reader, and returns the reader."""
        # Also says whether this user may see readers at all.
        await self._ask("GET_READER_LIST", ReaderList)

        def usable() -> list[Reader]:
            return [
                one
                for name, one in sorted(self._link.core.readers.items())
                if one.card is not None and kind in (None, one.card.kind) and reader in (None, name)
            ]

        await self._link.wait(lambda: bool(usable()), timeout, f"a card of the kind {kind}" if kind else "a card")
        return usable()[0]

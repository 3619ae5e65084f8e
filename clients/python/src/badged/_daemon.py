# SPDX-License-Identifier: Apache-2.0
"""Connections to badged: one that blocks, and one for asyncio."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Generator, Iterator
from types import TracebackType
from typing import Any

from ._both import Asynchronous, Blocking, run_to_end
from ._errors import BadgedError, ConnectError, ConnectionEnded
from ._links import AsyncLink, BlockingLink, Link
from ._records import Message
from ._workflow import AsyncWorkflow, Dialogue, Workflow
from .commands import Commands
from .commands.eid import finish_auth
from .messages import Auth


class _Daemon(Commands):
    def __init__(self, link: Link) -> None:
        self._link = link
        link.core.welcome = self._welcome

    def _welcome(self) -> Dialogue[Auth]:
        dialogue = self._dialogue("RUN_AUTH", {}, "AUTH", finish_auth)
        dialogue.is_started = True
        return dialogue

    def close(self) -> None:
        """Closes the connection, which cancels its workflow. A second call does nothing."""
        self._link.close()

    @property
    def ending(self) -> BadgedError | None:
        """Why the connection has ended; None while it is open."""
        return self._link.core.ending

    @property
    def lost_events(self) -> int:
        """How many events were dropped because more than 4 MiB of them were unread."""
        return self._link.core.lost_events

    async def _next_event(self) -> Message:
        found: list[Message] = []

        def ready() -> bool:
            event = self._link.core.next_event(lambda _: True)
            if event is not None:
                found.append(event)
            return bool(found)

        await self._link.wait(ready, None, "an event")
        return found[0]

    async def _incoming(self, timeout: float | None) -> Dialogue[Auth]:
        incoming = self._link.core.incoming
        await self._link.wait(lambda: bool(incoming), timeout, "an authentication")
        return incoming.popleft()


class Daemon(_Daemon, Blocking):
    """A connection whose methods block. It belongs to one thread; others may only call `cancel` and `close`."""

    def events(self) -> Iterator[Message]:
        """Every message that belongs to no workflow and answers no command, in order. Ends when `close` was called."""
        while True:
            try:
                yield run_to_end(self._next_event())
            except ConnectionEnded:
                if not self._link.is_closed_here:
                    raise
                return

    def next_authentication(self, timeout: float | None = None) -> Workflow[Auth]:
        """Waits until a browser starts an authentication; see `set_user_interface`."""
        return Workflow(run_to_end(self._incoming(timeout)))

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncDaemon(_Daemon, Asynchronous):
    """A connection for the running event loop. Its methods are coroutines."""

    async def events(self) -> AsyncIterator[Message]:
        """Every message that belongs to no workflow and answers no command, in order. Ends when `close` was called."""
        while True:
            try:
                event = await self._next_event()
            except ConnectionEnded:
                if not self._link.is_closed_here:
                    raise
                return
            yield event

    async def next_authentication(self, timeout: float | None = None) -> AsyncWorkflow[Auth]:
        """Waits until a browser starts an authentication; see `set_user_interface`."""
        return AsyncWorkflow(await self._incoming(timeout))

    async def __aenter__(self) -> AsyncDaemon:
        return self

    async def __aexit__(
        self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(path: str | None = None, *, timeout: float = 90.0) -> Daemon:
    """Connects to badged.

    `path` is a Unix socket; the default is $BADGED_SOCKET, or where badged listens on this system. `timeout` is how
    many seconds badged has to answer a command. Throws `ConnectError`.
    """
    daemon = Daemon(BlockingLink(path))
    daemon.timeout = timeout
    return daemon


class _Connecting:
    """What `connect_async` returns: for `await` and for `async with`."""

    def __init__(self, path: str | None, timeout: float, connected: socket.socket | None) -> None:
        self._path = path
        self._timeout = timeout
        self._connected = connected

    async def _connect(self) -> AsyncDaemon:
        if self._connected is None:
            link = await AsyncLink.open(self._path)
        else:
            self._connected.setblocking(False)
            link = AsyncLink(self._connected)
        self._daemon = AsyncDaemon(link)
        self._daemon.timeout = self._timeout
        return self._daemon

    def __await__(self) -> Generator[Any, None, AsyncDaemon]:
        return self._connect().__await__()

    async def __aenter__(self) -> AsyncDaemon:
        return await self._connect()

    async def __aexit__(self, *error: object) -> None:
        self._daemon.close()


def connect_async(
    path: str | None = None, *, timeout: float = 90.0, connected: socket.socket | None = None
) -> _Connecting:
    """As `connect`, for asyncio: `async with badged.connect_async() as daemon:`, or `await badged.connect_async()`.

    `connected` is a connected socket in place of `path`, such as one that leads to `badgectl send --pinentry`.
    """
    return _Connecting(path, timeout, connected)


class _Backoff:
    """The time before the next try to connect: longer and longer, and short again after a success."""

    FIRST, LAST = 0.1, 30.0

    def __init__(self) -> None:
        self._delay = 0.0

    def next(self) -> float:
        delay, self._delay = self._delay, min(max(2 * self._delay, self.FIRST), self.LAST)
        return delay

    def reset(self) -> None:
        self._delay = self.FIRST


def connections(path: str | None = None, *, timeout: float = 90.0) -> Iterator[Daemon]:
    """A new connection whenever the last one has ended and badged can be reached.

    The program uses each in the body of its loop. A missing permission, and a path that no socket can have, end the
    loop with their error. A path where nothing is may be that of a badged which starts later, so it is tried for ever,
    at least every 30 s, without a word.
    """
    backoff = _Backoff()
    while True:
        time.sleep(backoff.next())
        try:
            daemon = connect(path, timeout=timeout)
        except ConnectError as error:
            if error.code not in ("NOT_RUNNING", "UNREACHABLE"):
                raise
            continue
        backoff.reset()
        with daemon:
            yield daemon


async def connections_async(path: str | None = None, *, timeout: float = 90.0) -> AsyncIterator[AsyncDaemon]:
    """As `connections`, for asyncio."""
    backoff = _Backoff()
    while True:
        await asyncio.sleep(backoff.next())
        try:
            daemon = await connect_async(path, timeout=timeout)
        except ConnectError as error:
            if error.code not in ("NOT_RUNNING", "UNREACHABLE"):
                raise
            continue
        backoff.reset()
        async with daemon:
            yield daemon


__all__ = ["AsyncDaemon", "Daemon", "connect", "connect_async", "connections", "connections_async"]

# SPDX-License-Identifier: Apache-2.0
"""Sockets below the protocol: one that blocks, and one for asyncio. Lines are wiped when the system has taken them."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Protocol

from ._core import Core
from ._errors import BadgedError, ConnectError, ConnectionEnded, NoAnswer, connect_error
from ._secrets import wipe

SYSTEM_SOCKET = "/run/badged/badged.sock"
#: Seconds that connecting and sending may take.
PATIENCE = 60.0
#: How many bytes of lines wait at most until badged reads them.
MAXIMUM_UNSENT = 4 << 20


def standard_socket() -> str:
    """$BADGED_SOCKET; else the socket of the system if it exists; else that of a badged which runs as this user."""
    if path := os.environ.get("BADGED_SOCKET"):
        return path
    folder = os.environ.get("XDG_RUNTIME_DIR")
    if os.path.exists(SYSTEM_SOCKET) or not folder:
        return SYSTEM_SOCKET
    return f"{folder}/badged/badged.sock"


class Link(Protocol):
    """What the methods need of a socket."""

    core: Core
    #: Whether `close` was called.
    is_closed_here: bool

    def send(self, line: bytearray) -> None:
        """Sends a line, and wipes it."""

    async def wait(self, ready: Callable[[], bool], timeout: float | None, what: str) -> None:
        """Waits until it is ready. Throws `NoAnswer` naming `what`, or why the connection has ended."""

    def close(self) -> None:
        """Closes the connection."""


def _closed_here() -> ConnectionEnded:
    return ConnectionEnded("CLOSED", "this connection is closed", "connect again")


def _check(path: str) -> str:
    if not 1 <= len(os.fsencode(path)) <= 107:
        text = f"{path} is too long for a socket path" if path else "the path of the socket is empty"
        raise ConnectError("INVALID_PATH", text, "use a path of 1 to 107 bytes")
    return path


class BlockingLink:
    """One thread reads. Other threads may send and close."""

    def __init__(self, path: str | None) -> None:
        path = _check(path or standard_socket())
        self.core = Core()
        self.is_closed_here = False
        self._sending = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(PATIENCE)
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise connect_error(path, error) from error
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def send(self, line: bytearray) -> None:
        try:
            if self.core.ending is not None:
                raise self.core.ending
            with self._sending, memoryview(line) as view:
                self._socket.sendall(view)
        except OSError as error:
            # What badged said before it closed the connection is more interesting than the failed write.
            self._receive()
            self.core.closed()
            raise self._ending() from error
        finally:
            wipe(line)

    async def wait(self, ready: Callable[[], bool], timeout: float | None, what: str) -> None:
        end = None if timeout is None else time.monotonic() + timeout
        while not ready():
            if self.core.ending is not None:
                self._socket.close()
                raise self.core.ending
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise NoAnswer(f"{what} did not come within {timeout:g} s")
            # Rounded up: after the wait the time has come.
            if self._poll.poll(None if left is None else min(left, 1e6) * 1000 + 1):
                self._receive()

    def _receive(self) -> None:
        try:
            data = self._socket.recv(1 << 16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.core.receive(data)
        else:
            self.core.closed()

    def _ending(self) -> BadgedError:
        return self.core.ending or _closed_here()

    def close(self) -> None:
        self.is_closed_here = True
        self.core.end(_closed_here())
        with contextlib.suppress(OSError):
            # Wakes the thread that reads.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class AsyncLink:
    """A socket of the running event loop."""

    def __init__(self, socket_: socket.socket) -> None:
        self.core = Core()
        self.is_closed_here = False
        self._socket = socket_
        self._loop = asyncio.get_running_loop()
        self._waiting: set[asyncio.Future[None]] = set()
        #: Lines that the system has not taken yet, with the number of bytes that it has taken of the first one.
        self._unsent: collections.deque[bytearray] = collections.deque()
        self._sent = 0
        self._is_open = True
        self._loop.add_reader(socket_, self._readable)

    @classmethod
    async def open(cls, path: str | None) -> AsyncLink:
        path = _check(path or standard_socket())
        socket_ = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        socket_.setblocking(False)
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.get_running_loop().sock_connect(socket_, path)
        except OSError as error:
            socket_.close()
            raise connect_error(path, error) from error
        except BaseException:
            socket_.close()
            raise
        return cls(socket_)

    def send(self, line: bytearray) -> None:
        if self.core.ending is not None:
            wipe(line)
            raise self.core.ending
        if sum(map(len, self._unsent)) + len(line) > MAXIMUM_UNSENT:
            wipe(line)
            raise NoAnswer("badged does not read")
        self._unsent.append(line)
        if len(self._unsent) == 1:
            self._write()

    def _write(self) -> None:
        try:
            while self._unsent:
                with memoryview(self._unsent[0]) as view:
                    self._sent += self._socket.send(view[self._sent :])
                if self._sent == len(self._unsent[0]):
                    wipe(self._unsent.popleft())
                    self._sent = 0
        except BlockingIOError:
            self._loop.add_writer(self._socket, self._write)
            return
        except OSError:
            # Reading tells why.
            self._forget_unsent()
        self._loop.remove_writer(self._socket)

    def _forget_unsent(self) -> None:
        while self._unsent:
            wipe(self._unsent.popleft())
        self._sent = 0

    def _readable(self) -> None:
        try:
            data = self._socket.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.core.receive(data)
        else:
            self.core.closed()
        if self.core.ending is not None:
            self._shut()
        self._wake()

    def _wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def wait(self, ready: Callable[[], bool], timeout: float | None, what: str) -> None:
        try:
            async with asyncio.timeout(timeout):
                while not ready():
                    if self.core.ending is not None:
                        raise self.core.ending
                    future = self._loop.create_future()
                    self._waiting.add(future)
                    try:
                        await future
                    finally:
                        self._waiting.discard(future)
        except TimeoutError as error:
            if isinstance(error, BadgedError):
                raise
            raise NoAnswer(f"{what} did not come within {timeout:g} s") from None

    def _shut(self) -> None:
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._forget_unsent()
            self._socket.close()

    def close(self) -> None:
        self.is_closed_here = True
        self.core.end(_closed_here())
        self._shut()
        self._wake()

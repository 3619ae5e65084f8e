# SPDX-License-Identifier: Apache-2.0
"""The protocol without input and output: bytes go in, answers and events come out."""

from __future__ import annotations

import collections
import json
import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ._errors import BadgedError, ConnectionEnded, ProtocolError
from ._records import MESSAGES, Event, Message, parse
from .messages.readers import Reader, ReaderList

if TYPE_CHECKING:
    from ._workflow import Dialogue

#: The longest line, in bytes.
MAXIMUM_LINE = 1 << 20
#: How many bytes of messages are kept that the program does not read.
MAXIMUM_UNREAD = 4 << 20

Raw = dict[str, Any]


class Core:
    """The state of a connection."""

    def __init__(self) -> None:
        #: Why the connection has ended.
        self.ending: BadgedError | None = None
        #: The readers that badged has told, by name.
        self.readers: dict[str, Reader] = {}
        #: The workflow of the connection.
        self.dialogue: Dialogue[Any] | None = None
        #: Authentications that browsers have started, and that the program has not taken yet.
        self.incoming: collections.deque[Dialogue[Any]] = collections.deque()
        #: Makes the dialogue of an authentication that a browser starts.
        self.welcome: Callable[[], Dialogue[Any]] | None = None
        #: How many events were dropped because the program did not read them.
        self.lost_events = 0
        #: Events that nobody has read, with their size.
        self.events: collections.deque[tuple[Message, int]] = collections.deque()
        self._unread = 0
        self._buffer = bytearray()
        self._expected: dict[str, Callable[[Raw], None]] = {}
        self._prefix = f"{random.getrandbits(32):x}"
        self._requests = 0

    # Requests

    def expect(self, receive: Callable[[Raw], None]) -> str:
        """A new value for `request`. The answer goes to `receive`."""
        self._requests += 1
        request = f"{self._prefix}-{self._requests}"
        self._expected[request] = receive
        return request

    def forget(self, request: str) -> None:
        """The answer is not wanted any more."""
        if request in self._expected:
            self._expected[request] = lambda _: None

    # Bytes

    def receive(self, data: bytes) -> None:
        """Takes bytes of badged. What is wrong with them becomes `ending`."""
        if self.ending is not None:
            return
        self._buffer += data
        start = 0
        try:
            while (end := self._buffer.find(b"\n", start)) >= 0:
                if end - start > MAXIMUM_LINE:
                    raise ProtocolError("a line is longer than 1 MiB")
                self._take(bytes(self._buffer[start:end]))
                start = end + 1
            del self._buffer[:start]
            if len(self._buffer) > MAXIMUM_LINE:
                raise ProtocolError("a line is longer than 1 MiB")
        except BadgedError as error:
            self.end(error)

    def end(self, error: BadgedError) -> None:
        """The connection has ended. The first reason counts."""
        if self.ending is None:
            self.ending = error
        self._buffer.clear()
        self._expected.clear()

    def closed(self) -> None:
        """badged has closed the connection."""
        advice = "connect again; root and group adm can see why: journalctl -u badged"
        self.end(ConnectionEnded("CLOSED", "badged has closed the connection", advice))

    # Messages

    def _take(self, text: bytes) -> None:
        try:
            raw = json.loads(text, parse_constant=_refuse_constant)
        # RecursionError: a line with too many brackets.
        except (ValueError, RecursionError):
            raise ProtocolError("a line is not JSON") from None
        if not isinstance(raw, dict) or not isinstance(raw.get("msg"), str):
            raise ProtocolError("a line is not an object with the member msg")
        name, request = raw["msg"], raw.get("request")
        self._watch(name, raw)
        if isinstance(request, str) and request in self._expected:
            self._expected.pop(request)(raw)
        elif name == "INTERNAL_ERROR":
            text_ = f"badged does not serve this connection: {raw.get('error')}"
            advice = "the log says why, to root and to group adm: journalctl -u badged"
            raise ConnectionEnded("NOT_SERVED", text_, advice)
        elif issubclass(MESSAGES.get(name, Message), Event):
            self._add(parse(raw), len(text))
        elif self.dialogue is not None:
            self.dialogue.take(raw, len(text))
        elif name == "AUTH" and self.welcome is not None and not {"error", "result"} & raw.keys():
            self.dialogue = self.welcome()
            self.incoming.append(self.dialogue)
        elif name != "BAD_STATE":
            # A BAD_STATE here belongs to an answer that came after the end of its workflow.
            self._add(parse(raw), len(text))

    def _watch(self, name: str, raw: Raw) -> None:
        """Keeps the state of the readers."""
        if "error" in raw:
            return
        if name == "READER":
            reader = Reader.decode(raw)
            if reader.attached:
                self.readers[reader.name] = reader
            else:
                self.readers.pop(reader.name, None)
        elif name == "READER_LIST":
            self.readers = {reader.name: reader for reader in ReaderList.decode(raw).readers}

    def _add(self, message: Message, size: int) -> None:
        # Of an unread READER only the newest of each reader is of interest.
        if isinstance(message, Reader):
            for index, (other, other_size) in enumerate(self.events):
                if isinstance(other, Reader) and other.name == message.name:
                    del self.events[index]
                    self._unread -= other_size
                    break
        self.events.append((message, size))
        self._unread += size
        while self._unread > MAXIMUM_UNREAD:
            self._unread -= self.events.popleft()[1]
            self.lost_events += 1

    def next_event(self, wanted: Callable[[Message], bool]) -> Message | None:
        """Takes the first unread event that is wanted."""
        for index, (message, size) in enumerate(self.events):
            if wanted(message):
                del self.events[index]
                self._unread -= size
                return message
        return None


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def without_none(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members that have a value."""
    return {name: value for name, value in members.items() if value is not None}

# SPDX-License-Identifier: Apache-2.0
"""The rules of docs/fleet.md for consumers, without a network and without a clock of its own."""

from __future__ import annotations

import heapq
import json
import math
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

from ._news import Arrival, Clock, Document, Hole, Loss, Malformed, News, Presence, Reset, Withdrawn
from ._numbers import Numbers, Range, is_number

#: The kinds of messages that are events.
STREAMS = ("credential", "opening")

#: The kinds of messages of which only the newest counts.
DOCUMENTS = ("state", "health", "readers", "sightings")

#: Documents have at most 16 KiB, events 4 KiB.
_LARGEST = 65_536

#: Epochs of a stream, boots and ended sessions of a host that are remembered.
_MOST_EPOCHS = 8
_MOST_BOOTS = 8
_MOST_SESSIONS = 32
#: Events whose gaps may be reported again.
_MOST_REPORTS = 100

#: A host says how often it repeats its documents; this is the default of badged-mqtt in seconds.
_HEARTBEAT = 300

_HOST = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)


class _Wrong(Exception):
    """What is wrong with a message."""


class _Report(NamedTuple):
    """A gap without numbers, and the event that has reported it."""

    sequence: int
    reason: str
    missed: int | None
    since: int | None
    until: int | None

    def is_part(self, other: _Report) -> bool:
        """Whether a later report can have this one in it: then it begins no later."""
        begins = self.since is None or other.since is None or other.since <= self.since
        return self.reason == other.reason and begins


class _Stream:
    """One epoch of a stream of a host."""

    def __init__(self, numbers: Numbers, reports: list[list[Any]] | None = None) -> None:
        self.numbers = numbers
        self.reports = deque((_Report(*one) for one in reports or []), maxlen=_MOST_REPORTS)

    @classmethod
    def restore(cls, saved: Mapping[str, Any]) -> _Stream:
        reports = saved.get("reports")
        if not isinstance(reports, list) or not all(_is_report(one) for one in reports):
            raise ValueError("the reports of a stream are damaged")
        return cls(Numbers.restore(saved), reports)


class _Host:
    def __init__(self, name: str) -> None:
        self.name = name
        self.is_online: bool | None = None
        self.reason: str | None = None
        #: Of the newest `online`.
        self.session: str | None = None
        self.ended: deque[str] = deque(maxlen=_MOST_SESSIONS)
        self.heartbeat: float = _HEARTBEAT
        #: The documents that count, and when each expires.
        self.documents: dict[str, Mapping[str, Any]] = {}
        self.deadlines: dict[str, float] = {}
        #: Documents that have come before the state of their session, with their deadlines.
        self.waiting: dict[str, tuple[Mapping[str, Any], float]] = {}
        self.clocks: dict[str, int] = {}
        self.streams: dict[str, dict[str, _Stream]] = {}

    def save(self) -> dict[str, Any]:
        streams = {
            stream: {epoch: {**one.numbers.save(), "reports": list(one.reports)} for epoch, one in epochs.items()}
            for stream, epochs in self.streams.items()
        }
        return {
            "host": self.name,
            "online": self.is_online,
            "reason": self.reason,
            "session": self.session,
            "ended": list(self.ended),
            "heartbeat": self.heartbeat,
            "documents": list(self.documents),
            "clocks": self.clocks,
            "streams": streams,
        }

    @classmethod
    def restore(cls, name: str, saved: object) -> _Host:
        """Raises ValueError if it is not what `save` has returned for this host."""
        saved = _object(saved, "the whole")
        # Older versions have saved no name.
        if saved.get("host", name) != name:
            raise ValueError("it is that of another host")
        host = cls(name)
        host.is_online = _member(saved, "online", lambda value: value is None or isinstance(value, bool))
        host.reason = _member(saved, "reason", _is_text_or_none)
        host.session = _member(saved, "session", _is_text_or_none)
        host.ended.extend(_member(saved, "ended", _is_texts))
        host.heartbeat = _member(saved, "heartbeat", lambda value: is_number(value) and value > 0)
        # Their content comes again.
        host.documents = {kind: {} for kind in _member(saved, "documents", _is_texts) if kind in DOCUMENTS}
        host.clocks = dict(_object(saved.get("clocks"), "clocks"))
        if not all(type(offset) is int for offset in host.clocks.values()):
            raise ValueError("clocks are damaged")
        for stream, epochs in _object(saved.get("streams"), "streams").items():
            if stream not in STREAMS:
                raise ValueError("a stream is not known")
            host.streams[stream] = {
                epoch: _Stream.restore(_object(one, "an epoch")) for epoch, one in _object(epochs, "epochs").items()
            }
        return host


class Consumer:
    """Takes the messages of all hosts, and tells what they mean.

    Events come once, in the order of their numbers where the broker keeps it; what is missing is a `Hole` or a `Loss`;
    documents and presence count as long as their session does. The first message of a host is where its history begins.
    """

    def __init__(self, prefix: str = "badged/1") -> None:
        self.prefix = prefix
        self._hosts: dict[str, _Host] = {}
        #: When to look at a host: its next deadline, or an earlier time.
        self._alarms: list[tuple[float, str]] = []
        #: The alarm of each host that counts.
        self._next: dict[str, float] = {}

    # MARK: Messages

    def receive(
        self, topic: str, payload: bytes | str, *, expires: float | None = None, now: float | None = None
    ) -> list[News]:
        """What a message means; nothing for one that has come before, or that is void.

        `expires` is the message expiry of MQTT 5 in seconds. `now` is in seconds of a clock that is never set, by
        default `time.monotonic()`. Foreign bytes raise nothing.
        """
        if not topic.startswith(self.prefix + "/"):
            return []
        name, _, kind = topic[len(self.prefix) + 1 :].partition("/")
        if not _HOST.fullmatch(name):
            return [Malformed(host="", topic=topic, text="the topic names no host")]
        if kind not in STREAMS and kind not in DOCUMENTS:
            return []
        now = time.monotonic() if now is None else now
        try:
            if len(payload) > _LARGEST:
                raise _Wrong(f"it has {len(payload)} bytes")
            # An empty message removes the document of before.
            content = _parse(payload) if payload else None
            if kind in STREAMS:
                return list(self._event(name, kind, content)) if content is not None else []
            if kind == "state":
                return list(self._state(name, content, expires, now))
            return list(self._document(name, kind, content, expires, now))
        except _Wrong as error:
            return [Malformed(host=name, topic=topic, text=str(error))]

    # MARK: Events

    def _event(self, name: str, kind: str, content: Mapping[str, Any]) -> Iterator[News]:
        epoch = _text(content, "epoch")
        sequence = _number(content, "sequence", 1)
        if epoch is None or sequence is None:
            raise _Wrong("an event needs epoch and sequence")
        host = self._host(name)
        stream = self._stream(host, kind, epoch, begin=sequence)
        numbers = stream.numbers
        before = numbers.holes()
        is_late = sequence <= numbers.highest
        if not numbers.arrive(sequence):
            return
        gaps = content.get("gap")
        losses = list(self._gaps(host, kind, epoch, stream, sequence, gaps if isinstance(gaps, list) else []))
        yield from _changes(name, kind, epoch, before, numbers)
        yield from losses
        boot = _text(content, "boot")
        uptime = _number(content, "uptime")
        offset = host.clocks.get(boot or "")
        yield Arrival(
            host=name,
            stream=kind,
            epoch=epoch,
            sequence=sequence,
            content=content,
            time=_number(content, "time") if offset is None or uptime is None else offset + uptime,
            boot=boot,
            uptime=uptime,
            is_late=is_late,
        )

    def _gaps(
        self, host: _Host, kind: str, epoch: str, stream: _Stream, sequence: int, gaps: list[Any]
    ) -> Iterator[Loss]:
        """Notes what the gaps of an event say of numbers, and reports the others."""
        dropped: list[tuple[int, int]] = []
        others: list[_Report] = []
        for gap in gaps:
            reason = _text(gap, "reason") if isinstance(gap, dict) else None
            if reason is None:
                continue
            first = _number(gap, "from", 1)
            last = _number(gap, "to", 1)
            if first is not None and last is not None:
                stream.numbers.explain(first, min(last, stream.numbers.highest), reason)
                dropped.append((first, last))
            else:
                times = (_number(gap, "since"), _number(gap, "until"))
                others.append(_Report(sequence, reason, _number(gap, "missed"), *times))
        for report in others:
            # A host that has dropped an event reports its gaps once more, although the event may have come.
            known = [
                one for one in stream.reports if one.is_part(report) and any(a <= one.sequence <= b for a, b in dropped)
            ]
            for one in known:
                stream.reports.remove(one)
            stream.reports.append(report)
            missed = report.missed
            if missed is not None:
                missed = max(0, missed - sum(one.missed or 0 for one in known))
            if known and (missed == 0 or missed is None and any(one.until == report.until for one in known)):
                continue
            yield Loss(
                host=host.name,
                stream=kind,
                epoch=epoch,
                sequence=sequence,
                reason=report.reason,
                missed=missed,
                since=report.since,
                until=report.until,
            )

    def _stream(self, host: _Host, kind: str, epoch: str, begin: int) -> _Stream:
        """The numbers of an epoch. The first epoch begins at this number, because nobody knows what was before this
        consumer. A later one is new with a new queue file, and begins at 1."""
        epochs = host.streams.setdefault(kind, {})
        if epoch not in epochs:
            epochs[epoch] = _Stream(Numbers() if len(epochs) > 0 else Numbers.beginning_at(begin))
            if len(epochs) > _MOST_EPOCHS:
                del epochs[next(iter(epochs))]
        return epochs[epoch]

    # MARK: Documents

    def _state(self, name: str, content: Mapping[str, Any] | None, expires: float | None, now: float) -> Iterator[News]:
        host = self._host(name)
        if content is None:
            yield from self._leave(host, host.session, "forgotten")
            return
        state = content.get("state")
        session = _text(content, "session")
        if state not in ("online", "offline") or session is None:
            raise _Wrong("a state needs state and session")
        if state == "offline":
            # Of an earlier connection: a will that comes late.
            if host.session is not None and session != host.session:
                return
            if session not in host.ended:
                host.ended.append(session)
            yield from self._leave(host, session, _text(content, "reason"))
            return
        # A connection that has ended never comes back.
        if session in host.ended:
            return
        if not host.is_online or session != host.session:
            yield from self._void(host)
            if host.session is not None and session != host.session:
                host.ended.append(host.session)
            host.is_online = True
            host.reason = None
            host.session = session
            yield Presence(host=name, is_online=True, session=session)
        host.heartbeat = max(1, _number(content, "heartbeat") or _HEARTBEAT)
        yield from self._clock(host, content)
        yield self._show(host, "state", content, _deadline(host, expires, now))
        yield from self._expect(host, content)
        # Retained messages of a host come in any order.
        for kind, (one, deadline) in list(host.waiting.items()):
            if one["session"] == session:
                del host.waiting[kind]
                if deadline > now:
                    yield self._show(host, kind, one, deadline)

    def _expect(self, host: _Host, content: Mapping[str, Any]) -> Iterator[News]:
        """What the broker has acknowledged must have come."""
        streams, queue = content.get("streams"), content.get("queue")
        if not isinstance(streams, dict):
            return
        # The newest events of either stream wait.
        waiting = _number(queue, "waiting") if isinstance(queue, dict) else None
        for kind in STREAMS:
            one = streams.get(kind)
            epoch = _text(one, "epoch") if isinstance(one, dict) else None
            last = _number(one, "last") if isinstance(one, dict) else None
            if epoch is None or last is None or waiting is None:
                continue
            due = max(0, last - waiting)
            numbers = self._stream(host, kind, epoch, begin=due + 1).numbers
            before = numbers.holes()
            numbers.expect(due)
            yield from _changes(host.name, kind, epoch, before, numbers)

    def _clock(self, host: _Host, content: Mapping[str, Any]) -> Iterator[News]:
        boot = _text(content, "boot")
        when = _number(content, "time")
        uptime = _number(content, "uptime")
        if boot is None or when is None or uptime is None or content.get("clock") is False:
            return
        offset = when - uptime
        if boot not in host.clocks or abs(host.clocks[boot] - offset) > 1000:
            host.clocks.pop(boot, None)
            host.clocks[boot] = offset
            if len(host.clocks) > _MOST_BOOTS:
                del host.clocks[next(iter(host.clocks))]
            yield Clock(host=host.name, boot=boot, offset=offset)

    def _document(
        self, name: str, kind: str, content: Mapping[str, Any] | None, expires: float | None, now: float
    ) -> Iterator[News]:
        host = self._host(name)
        if content is None:
            yield from self._remove(host, kind)
            return
        session = _text(content, "session")
        if session is None:
            raise _Wrong("a document needs session")
        if host.is_online and session == host.session:
            yield self._show(host, kind, content, _deadline(host, expires, now))
        elif session not in host.ended:
            host.waiting[kind] = (content, _deadline(host, expires, now))

    def _show(self, host: _Host, kind: str, content: Mapping[str, Any], deadline: float) -> Document:
        host.documents[kind] = content
        self._set_alarm(host, kind, deadline)
        return Document(host=host.name, kind=kind, content=content)

    def _remove(self, host: _Host, kind: str) -> Iterator[News]:
        host.waiting.pop(kind, None)
        host.deadlines.pop(kind, None)
        if host.documents.pop(kind, None) is not None:
            yield Document(host=host.name, kind=kind, content=None)

    def _void(self, host: _Host) -> Iterator[News]:
        """The documents of a session that is over count no longer."""
        waiting = host.waiting
        host.waiting = {}
        for kind in sorted(host.documents):
            yield from self._remove(host, kind)
        host.waiting = waiting

    def _leave(self, host: _Host, session: str | None, reason: str | None) -> Iterator[News]:
        was = (host.is_online, host.reason)
        host.is_online = False
        host.reason = reason
        yield from self._void(host)
        host.deadlines.pop("state", None)
        if was != (False, reason):
            yield Presence(host=host.name, is_online=False, session=session, reason=reason)

    # MARK: Time

    def tick(self, now: float | None = None) -> list[News]:
        """What has expired. Call it at `deadline`, and only while the connection to the broker is up."""
        now = time.monotonic() if now is None else now
        news: list[News] = []
        while self._alarms and self._alarms[0][0] <= now:
            deadline, name = heapq.heappop(self._alarms)
            if self._next.get(name) != deadline:
                continue
            del self._next[name]
            host = self._hosts[name]
            for kind in [kind for kind, deadline in host.deadlines.items() if deadline <= now]:
                host.deadlines.pop(kind, None)
                news += self._leave(host, host.session, "expired") if kind == "state" else self._remove(host, kind)
            if host.deadlines:
                self._add_alarm(host, min(host.deadlines.values()))
        return news

    @property
    def deadline(self) -> float | None:
        """When `tick` must be called; None: nothing can expire."""
        return self._alarms[0][0] if self._alarms else None

    def connected(self, now: float | None = None) -> None:
        """A new connection to the broker: hosts that were online have 2.5 heartbeats to say so again."""
        now = time.monotonic() if now is None else now
        for host in self._hosts.values():
            for kind in host.documents:
                self._set_alarm(host, kind, now + host.heartbeat * 2.5)

    def _set_alarm(self, host: _Host, kind: str, deadline: float) -> None:
        host.deadlines[kind] = deadline
        self._add_alarm(host, deadline)

    def _add_alarm(self, host: _Host, deadline: float) -> None:
        if deadline < self._next.get(host.name, math.inf):
            self._next[host.name] = deadline
            heapq.heappush(self._alarms, (deadline, host.name))

    # MARK: State

    @property
    def hosts(self) -> list[str]:
        """The names of all hosts that were heard of."""
        return list(self._hosts)

    def is_online(self, host: str) -> bool:
        return host in self._hosts and bool(self._hosts[host].is_online)

    def documents(self, host: str) -> dict[str, Mapping[str, Any]]:
        """The documents of a host that count, by kind."""
        one = self._hosts.get(host)
        return {kind: content for kind, content in one.documents.items() if content} if one else {}

    def holes(self, host: str) -> list[Hole]:
        """The events of a host that are missing."""
        one = self._hosts.get(host)
        return [
            _hole(host, kind, epoch, found)
            for kind, epochs in (one.streams if one else {}).items()
            for epoch, stream in epochs.items()
            for found in sorted(stream.numbers.holes(), key=lambda found: found.first)
        ]

    def save(self, host: str) -> dict[str, Any]:
        """What must be kept of a host to go on after a restart, for `json.dumps`. Store it together with the news."""
        return self._hosts[host].save()

    def restore(self, host: str, saved: Mapping[str, Any] | str | bytes) -> list[News]:
        """Goes on with what `save` has returned, or with its JSON. Call `connected` when the broker is connected.

        What is damaged or of another host raises nothing: it is a `Reset`, and the history of the host begins anew, or
        goes on if this consumer has heard of the host. Store the news as those of `receive`.
        """
        if not isinstance(host, str) or not _HOST.fullmatch(host):
            return [Malformed(host="", topic="", text="what was saved is of a name that no host can have")]
        try:
            content = json.loads(saved) if isinstance(saved, str | bytes) else saved
            self._hosts[host] = _Host.restore(host, content)
        except (ValueError, RecursionError) as error:
            self._host(host)
            return [Reset(host=host, text=f"what was saved cannot be used: {error}")]
        return []

    def _host(self, name: str) -> _Host:
        if name not in self._hosts:
            self._hosts[name] = _Host(name)
        return self._hosts[name]


def _deadline(host: _Host, expires: float | None, now: float) -> float:
    time_left = host.heartbeat * 2.5
    return now + (time_left if expires is None else min(time_left, expires))


def _changes(host: str, stream: str, epoch: str, before: set[Range], numbers: Numbers) -> Iterator[News]:
    after = numbers.holes()
    numbers.forget()
    for one in sorted(before - after, key=lambda one: one.first):
        yield Withdrawn(host=host, hole=_hole(host, stream, epoch, one))
    for one in sorted(after - before, key=lambda one: one.first):
        yield _hole(host, stream, epoch, one)


def _hole(host: str, stream: str, epoch: str, one: Range) -> Hole:
    return Hole(host=host, stream=stream, epoch=epoch, first=one.first, last=one.last, reason=one.reason)


# MARK: What was saved


def _object(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ValueError(f"{name} is no object")
    return value


def _member(saved: Mapping[str, Any], key: str, is_right: Callable[[Any], bool]) -> Any:
    if key not in saved or not is_right(saved[key]):
        raise ValueError(f"{key} is damaged")
    return saved[key]


def _is_text_or_none(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_report(value: object) -> bool:
    """Whether it is what `_Report` has: sequence and reason, and three numbers that may be missing."""
    return (
        isinstance(value, list | tuple)
        and len(value) == 5
        and is_number(value[0])
        and isinstance(value[1], str)
        and all(one is None or is_number(one) for one in value[2:])
    )


# MARK: Foreign bytes


def _parse(payload: bytes | str) -> dict[str, Any]:
    try:
        content = json.loads(
            payload if isinstance(payload, str) else payload.decode(), parse_constant=_refuse, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        raise _Wrong(f"it is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise _Wrong("it is no object")
    return content


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _text(content: Mapping[str, Any], key: str) -> str | None:
    """A member that is a text of at most 64 characters, without halves of surrogates; None: it is another thing."""
    value = content.get(key)
    if isinstance(value, str) and 0 < len(value) <= 64 and not any("\ud800" <= one <= "\udfff" for one in value):
        return value
    return None


def _number(content: Mapping[str, Any], key: str, least: int = 0) -> int | None:
    """A member that is an integer of at most 2^53; None: it is another thing."""
    value = content.get(key)
    return value if type(value) is int and least <= value <= 1 << 53 else None

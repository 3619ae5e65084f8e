# SPDX-License-Identifier: Apache-2.0
"""Consumers of a fleet, with recordings of a real broker (fleet/README.md) and with messages made here."""

from __future__ import annotations

import itertools
import json
import pathlib
import random
import types
import unittest
import unittest.mock
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from badged import fleet
from badged.fleet import mqtt

FOLDER = pathlib.Path(__file__).parent / "fleet"
RECORDINGS = sorted(path.stem for path in FOLDER.glob("*.jsonl"))
TOPIC = "badged/1/door"


def recording(name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What is known without the messages, and the messages."""
    first, *lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return json.loads(first), [json.loads(line) for line in lines]


def step(consumer: fleet.Consumer, line: Mapping[str, Any], connected: bool = True) -> list[fleet.News]:
    news = consumer.tick(line["at"]) if connected else []
    if line.get("connected"):
        consumer.connected(line["at"])
    if "topic" in line:
        news += consumer.receive(line["topic"], line["payload"], expires=line.get("expires"), now=line["at"])
    return news


def replay(lines: Iterable[Mapping[str, Any]], restarts: bool = False) -> tuple[fleet.Consumer, list[fleet.News]]:
    """All news of a recording. With `restarts` the consumer begins anew after each line, from what it has saved."""
    consumer, news, connected = fleet.Consumer(), list[fleet.News](), True
    for line in lines:
        connected = line.get("connected", connected)
        news += step(consumer, line, connected)
        if restarts:
            saved = json.dumps({host: consumer.save(host) for host in consumer.hosts})
            consumer = fleet.Consumer()
            for host, content in json.loads(saved).items():
                news += consumer.restore(host, content)
            consumer.connected(line["at"])
    return consumer, news


def events(news: Iterable[fleet.News]) -> list[fleet.Arrival]:
    return [one for one in news if isinstance(one, fleet.Arrival)]


def open_holes(news: Iterable[fleet.News]) -> list[fleet.Hole]:
    """The holes that are left when all news are read."""
    found: dict[tuple[str, str, str, int], fleet.Hole] = {}
    for one in news:
        if isinstance(one, fleet.Hole):
            key = (one.host, one.stream, one.epoch, one.first)
            assert key not in found, "a hole is reported twice"
            found[key] = one
        elif isinstance(one, fleet.Withdrawn):
            hole = one.hole
            assert found.pop((hole.host, hole.stream, hole.epoch, hole.first)) == hole, "another hole is withdrawn"
    return sorted(found.values(), key=lambda one: (one.epoch, one.first))


def missed(news: Iterable[fleet.News]) -> int:
    return sum(one.missed or 0 for one in news if isinstance(one, fleet.Loss))


def presence(news: Iterable[fleet.News], host: str) -> list[str | None]:
    """What was said of a host: online, or why it is offline."""
    return [
        "online" if one.is_online else one.reason
        for one in news
        if isinstance(one, fleet.Presence) and one.host == host
    ]


class Recordings(unittest.TestCase):
    #: For each recording: taps, arrivals, lost numbers by their reason, and lost taps without a number.
    EXPECTED: dict[str, tuple[int, int, dict[str | None, int], int]] = {
        "badged-restarts": (6, 6, {}, 0),
        "broker-drops": (25, 10, {None: 15}, 0),
        "broker-restarts": (22, 8, {None: 14}, 0),
        "broker-with-persistence-restarts": (11, 11, {}, 0),
        "clock-set-back": (6, 6, {}, 0),
        "consumer-away": (15, 5, {None: 10}, 0),
        "consumer-comes-late": (2, 2, {}, 0),
        "gap-reported-twice": (48, 25, {"queueFull": 21}, 2),
        "host-and-broker-die": (2, 2, {}, 0),
        "host-restarts": (31, 21, {}, 10),
        "links-cut": (25, 25, {}, 0),
        "old-broker": (2, 2, {}, 0),
        "queue-overflows": (104, 42, {"queueFull": 62}, 0),
        "settings-and-removal": (2, 2, {}, 0),
        # How many were lost is not known: the file that knew is gone.
        "store-lost": (17, 9, {}, 0),
        "two-hosts-with-one-name": (24, 24, {}, 0),
        "two-ways": (15, 15, {}, 0),
    }
    #: Recordings that say of a loss that nobody knows how many events it has.
    UNKNOWN = {
        "badged-restarts": ["daemonAway", "daemonAway"],
        "queue-overflows": ["notWatching"],
        "store-lost": ["storeLost", "storeLost"],
    }

    def test_all_recordings_are_there(self) -> None:
        self.assertEqual(RECORDINGS, sorted(self.EXPECTED))

    def test_each_event_arrives_once_and_in_order(self) -> None:
        for name in RECORDINGS:
            with self.subTest(name):
                known, lines = recording(name)
                _, news = replay(lines)
                places = [(one.host, one.stream, one.epoch, one.sequence) for one in events(news)]
                self.assertEqual(len(set(places)), len(places))
                heard = {
                    (line["topic"].split("/")[2], payload["epoch"], payload["sequence"])
                    for line in lines
                    if line.get("topic", "").endswith("/credential") and (payload := json.loads(line["payload"]))
                }
                self.assertEqual({(host, epoch, number) for host, _, epoch, number in places}, heard)
                for host in known["taps"]:
                    ids = [one.content["id"] for one in events(news) if one.host == host]
                    self.assertEqual(len(set(ids)), len(ids))
                newest: dict[tuple[str, str, str], int] = {}
                for one in events(news):
                    key = (one.host, one.stream, one.epoch)
                    self.assertEqual(one.is_late, one.sequence < newest.get(key, 0))
                    newest[key] = max(one.sequence, newest.get(key, 0))

    def test_no_tap_is_lost_silently(self) -> None:
        for name in RECORDINGS:
            with self.subTest(name):
                known, lines = recording(name)
                _, news = replay(lines)
                lost = Counter[str | None]()
                for hole in open_holes(news):
                    lost[hole.reason] += hole.count
                taps = sum(map(len, known["taps"].values()))
                self.assertEqual((taps, len(events(news)), dict(lost), missed(news)), self.EXPECTED[name])
                unknown = [one.reason for one in news if isinstance(one, fleet.Loss) and one.missed is None]
                self.assertEqual(unknown, self.UNKNOWN.get(name, []))
                if "storeLost" not in unknown:
                    self.assertEqual(taps - len(events(news)), lost.total() + missed(news))

    def test_hosts_come_and_go(self) -> None:
        expected = {
            "broker-drops": ["online", "connectionLost"],
            "consumer-comes-late": ["online", "connectionLost"],
            "host-and-broker-die": ["online", "expired"],
            "host-restarts": [*["online", "connectionLost"] * 6, "online", "stopped"],
            # Nothing expires at the broker, so the retained state comes again after the death of the host.
            "old-broker": ["online", "expired"],
            "settings-and-removal": ["online", "restarting", "online", "stopped", "forgotten"],
            "store-lost": ["online"] * 3,
            "two-ways": ["online", "stopped"],
        }
        for name, words in expected.items():
            with self.subTest(name):
                known, lines = recording(name)
                self.assertEqual(presence(replay(lines)[1], next(iter(known["taps"]))), words)
        _, news = replay(recording("consumer-comes-late")[1])
        self.assertEqual([presence(news, host) for host in ("stopped", "killed")], [["stopped"], ["connectionLost"]])

    def test_a_clock_that_is_set_later_gives_the_time_of_earlier_events(self) -> None:
        consumer, news = replay(recording("clock-set-back")[1])
        offsets = {one.boot: one.offset for one in news if isinstance(one, fleet.Clock)}
        times = [offsets[one.boot or ""] + (one.uptime or 0) for one in events(news)]
        self.assertEqual(times, sorted(times))
        self.assertLess(max(times) - min(times), 60_000)
        self.assertLess(events(news)[0].content["time"], times[0] - 2_900_000_000)

    def test_a_restart_after_each_message_changes_nothing(self) -> None:
        def kept(news: Iterable[fleet.News]) -> list[fleet.News]:
            return [one for one in news if not isinstance(one, fleet.Document)]

        for name in RECORDINGS:
            with self.subTest(name):
                _, lines = recording(name)
                self.assertEqual(kept(replay(lines, restarts=True)[1]), kept(replay(lines)[1]))

    def test_messages_that_come_twice_change_nothing(self) -> None:
        for name in RECORDINGS:
            with self.subTest(name):
                _, lines = recording(name)
                twice = [copy for line in lines for copy in (line, line)]
                self.assertEqual(events(replay(twice)[1]), events(replay(lines)[1]))
                self.assertEqual(open_holes(replay(twice)[1]), open_holes(replay(lines)[1]))
                self.assertEqual(missed(replay(twice)[1]), missed(replay(lines)[1]))

    def test_another_order_loses_no_event_and_leaves_no_other_hole(self) -> None:
        for name in RECORDINGS:
            _, lines = recording(name)
            plain = replay(lines)[1]
            for seed in range(20):
                with self.subTest(name, seed=seed):
                    chance = random.Random(seed)
                    # Events overtake each other, as over two connections. What begins a history stays first.
                    mixed = sorted(
                        enumerate(lines), key=lambda one: one[0] + (chance.random() * 8 if one[0] > 5 else 0)
                    )
                    news = replay({**line, "at": index} for index, (_, line) in enumerate(mixed))[1]
                    self.assertEqual(
                        {(one.epoch, one.sequence) for one in events(news)},
                        {(one.epoch, one.sequence) for one in events(plain)},
                    )
                    numbers = [
                        {(hole.epoch, n) for hole in open_holes(one) for n in range(hole.first, hole.last + 1)}
                        for one in (news, plain)
                    ]
                    self.assertLessEqual(numbers[1], numbers[0])
                    self.assertFalse(numbers[0] & {(one.epoch, one.sequence) for one in events(news)})


STATE: dict[str, Any] = {
    "state": "online",
    "session": "s1",
    "heartbeat": 100,
    "time": 5_000,
    "uptime": 1_000,
    "boot": "b",
}


class Rules(unittest.TestCase):
    """The rules of docs/fleet.md, each with messages that are made here."""

    def setUp(self) -> None:
        self.consumer = fleet.Consumer()
        self.now = 0.0

    def receive(self, kind: str, content: Mapping[str, Any] | bytes, expires: float | None = None) -> list[fleet.News]:
        payload = content if isinstance(content, bytes) else json.dumps(content).encode()
        return self.consumer.receive(f"{TOPIC}/{kind}", payload, expires=expires, now=self.now)

    def online(self, session: str = "s1", **members: Any) -> list[fleet.News]:
        return self.receive("state", {**STATE, "session": session, **members})

    def offline(self, session: str, reason: str = "connectionLost") -> list[fleet.News]:
        return self.receive("state", {"state": "offline", "session": session, "reason": reason})

    def event(self, sequence: int, epoch: str = "e", stream: str = "credential", **members: Any) -> list[fleet.News]:
        return self.receive(stream, {"epoch": epoch, "sequence": sequence, **members})

    def holes(self) -> list[tuple[int, int, str | None]]:
        return [(hole.first, hole.last, hole.reason) for hole in self.consumer.holes("door")]

    # MARK: Events

    def test_each_stream_and_each_epoch_counts_by_itself(self) -> None:
        for epoch in ("e", "f"):
            for stream in fleet.STREAMS:
                self.assertEqual([type(one) for one in self.event(1, epoch, stream)], [fleet.Arrival])
                self.assertEqual(self.event(1, epoch, stream), [])
        self.assertEqual(self.holes(), [])

    def test_unknown_members_are_passed_on(self) -> None:
        (arrival,) = self.event(1, later={"member": [1]})
        assert isinstance(arrival, fleet.Arrival)
        self.assertEqual(arrival.content["later"], {"member": [1]})
        documents = [one for one in self.online(configuration="ab") if isinstance(one, fleet.Document)]
        self.assertEqual(documents[0].content, {**STATE, "configuration": "ab"})

    def test_a_number_that_is_missing_is_a_hole_until_it_comes(self) -> None:
        self.event(1)
        self.event(5)
        self.assertEqual(self.holes(), [(2, 4, None)])
        news = self.event(3)
        self.assertEqual([type(one) for one in news], [fleet.Withdrawn, fleet.Hole, fleet.Hole, fleet.Arrival])
        self.assertTrue(events(news)[0].is_late)
        self.assertEqual(self.event(3), [])
        self.event(2)
        self.event(4)
        self.assertEqual(self.holes(), [])

    def test_a_gap_gives_the_reason_of_numbers_that_have_not_come(self) -> None:
        for number in (1, 3, 4):
            self.event(number)
        self.event(
            9,
            gap=[{"reason": "queueFull", "from": 2, "to": 7, "missed": 3}, {"reason": "tooLarge", "from": 8, "to": 8}],
        )
        self.assertEqual(self.holes(), [(2, 2, "queueFull"), (5, 7, "queueFull"), (8, 8, "tooLarge")])

    def test_a_gap_that_comes_later_gives_the_reason_of_a_hole(self) -> None:
        self.event(1)
        self.event(5)
        news = self.event(6, gap=[{"reason": "queueFull", "from": 3, "to": 4}])
        self.assertEqual(self.holes(), [(2, 2, None), (3, 4, "queueFull")])
        self.assertEqual([type(one) for one in news], [fleet.Withdrawn, fleet.Hole, fleet.Hole, fleet.Arrival])

    def test_a_gap_before_the_first_event_is_a_hole(self) -> None:
        self.event(250, gap=[{"reason": "queueFull", "from": 1, "to": 230}])
        self.assertEqual(self.holes(), [(1, 230, "queueFull")])

    def test_what_was_before_the_first_message_is_no_hole(self) -> None:
        self.event(700)
        self.assertEqual(self.holes(), [])
        self.assertTrue(events(self.event(699))[0].is_late)
        self.assertEqual(self.event(699), [])

    def test_a_new_epoch_begins_at_one(self) -> None:
        self.event(700)
        self.event(3, "f", gap=[{"reason": "storeLost"}])
        self.assertEqual(self.holes(), [(1, 2, None)])

    def test_the_state_says_what_must_have_come(self) -> None:
        def streams(last: int, waiting: int) -> dict[str, Any]:
            return {"queue": {"waiting": waiting}, "streams": {"credential": {"epoch": "e", "last": last, "lost": 0}}}

        self.online(**streams(10, 3))
        self.assertEqual(self.holes(), [])
        for number in (8, 9):
            self.event(number)
        self.online(**streams(14, 2))
        self.assertEqual(self.holes(), [(10, 12, None)])
        # What waits is not lost.
        self.assertEqual(len(self.event(13)), 1)
        self.event(14, gap=[{"reason": "queueFull", "from": 11, "to": 12}])
        self.assertEqual(self.holes(), [(10, 10, None), (11, 12, "queueFull")])

    def test_a_loss_without_numbers_counts_once(self) -> None:
        news = self.event(
            1, gap=[{"reason": "notWatching", "missed": 3, "until": 5}, {"reason": "daemonAway", "until": 7}]
        )
        # The host has dropped this event unacknowledged, and reports its gaps with those of others.
        news += self.event(
            4,
            gap=[
                {"reason": "queueFull", "from": 1, "to": 3, "missed": 3},
                {"reason": "notWatching", "missed": 5, "until": 9},
                {"reason": "daemonAway", "until": 7},
            ],
        )
        # Dropped as well, with one more.
        news += self.event(
            6,
            gap=[
                {"reason": "queueFull", "from": 1, "to": 5, "missed": 5},
                {"reason": "notWatching", "missed": 6, "until": 11},
            ],
        )
        news += self.event(7, gap=[{"reason": "notWatching", "missed": 4}])
        losses = [(one.reason, one.missed) for one in news if isinstance(one, fleet.Loss)]
        self.assertEqual(
            losses,
            [("notWatching", 3), ("daemonAway", None), ("notWatching", 2), ("notWatching", 1), ("notWatching", 4)],
        )
        self.assertEqual(self.holes(), [(2, 3, "queueFull"), (5, 5, "queueFull")])

    def test_a_later_loss_is_no_repeated_one(self) -> None:
        news = self.event(10, gap=[{"reason": "notWatching", "missed": 3, "since": 100, "until": 200}])
        # The range has event 10 in it, which the host has kept.
        gap = [
            {"reason": "queueFull", "from": 9, "to": 12, "missed": 2},
            {"reason": "notWatching", "missed": 2, "since": 300, "until": 400},
        ]
        news += self.event(13, gap=gap)
        self.assertEqual(missed(news), 5)

    # MARK: Presence and documents

    def test_an_offline_of_an_earlier_session_is_void(self) -> None:
        self.online("s1")
        self.online("s2")
        self.assertEqual(self.offline("s1"), [])
        self.assertTrue(self.consumer.is_online("door"))
        self.assertIn(
            fleet.Presence(host="door", is_online=False, session="s2", reason="stopped"), self.offline("s2", "stopped")
        )

    def test_a_session_that_has_ended_never_comes_back(self) -> None:
        self.online("s1")
        self.online("s2")
        self.assertEqual(self.online("s1"), [])
        self.offline("s2")
        self.assertEqual(self.online("s2"), [])
        self.assertFalse(self.consumer.is_online("door"))

    def test_an_offline_counts_when_nothing_else_is_known(self) -> None:
        self.assertEqual(
            self.offline("s1"), [fleet.Presence(host="door", is_online=False, session="s1", reason="connectionLost")]
        )
        self.assertEqual(self.offline("s1"), [])

    def test_a_document_counts_only_with_the_state_of_its_session(self) -> None:
        new = {"session": "s2", "readers": ["new"]}
        self.online("s1")
        self.receive("readers", {"session": "s1", "readers": ["old"]})
        self.assertEqual(self.receive("readers", new), [])
        self.assertEqual(self.consumer.documents("door")["readers"]["readers"], ["old"])
        news = self.online("s2")
        self.assertEqual(
            [(one.kind, one.content and one.content["session"]) for one in news if isinstance(one, fleet.Document)],
            [("readers", None), ("state", None), ("state", "s2"), ("readers", "s2")],
        )
        self.assertEqual(self.receive("readers", {"session": "s1", "readers": ["old"]}), [])
        self.offline("s2")
        self.assertEqual(self.consumer.documents("door"), {})

    def test_a_document_of_before_a_restart_is_void_when_its_host_has_ended(self) -> None:
        self.online()
        self.receive("health", {"session": "s1"})
        saved = self.consumer.save("door")
        self.consumer = fleet.Consumer()
        self.consumer.restore("door", saved)
        voided = [one.kind for one in self.offline("s1") if isinstance(one, fleet.Document) and one.content is None]
        self.assertEqual(voided, ["health", "state"])

    def test_what_was_saved_and_cannot_be_used_is_told_and_begins_anew(self) -> None:
        self.online()
        self.event(5)
        self.event(8)
        good = json.loads(json.dumps(self.consumer.save("door")))
        ((epoch, numbers),) = good["streams"]["credential"].items()

        def without(key: str) -> dict[str, Any]:
            return {name: value for name, value in good.items() if name != key}

        def with_numbers(**changes: Any) -> dict[str, Any]:
            return {**good, "streams": {"credential": {epoch: {**numbers, **changes}}}}

        wrong: list[Any] = [
            *(None, [], 5, "", "{", b"\xff", json.dumps(good)[:-20], "[" * 100_000, {}, {**good, "host": "gate"}),
            *(without(key) for key in good if key != "host"),
            *({**good, key: value} for key in good for value in (5.5, [5], {"x": "y"})),
            *(with_numbers(highest=value) for value in (-1, "8", True, 1 << 60)),
            *(with_numbers(missing=value) for value in (None, [[1, 4]], [[6, 7, None], [1, 4, "before"]])),
            *(with_numbers(missing=[value]) for value in ([6, 9, None], [0, 7, None], [7, 6, None], [6, 7, 5])),
            *(with_numbers(reports=value) for value in (None, [[1]], [[1, 2, None, None, None]])),
        ]
        for saved in wrong:
            with self.subTest(saved=str(saved)[:200]):
                consumer = fleet.Consumer()
                news = consumer.restore("door", saved)
                self.assertEqual([(type(one), one.host) for one in news], [(fleet.Reset, "door")])
                # Its history begins anew, and what is saved now is whole.
                self.assertEqual(fleet.Consumer().restore("door", consumer.save("door")), [])
                again = consumer.receive(f"{TOPIC}/credential", json.dumps({"epoch": epoch, "sequence": 5}))
                self.assertEqual([type(one) for one in again], [fleet.Arrival])
                # A consumer that knows the host loses nothing.
                self.assertEqual([type(one) for one in self.consumer.restore("door", saved)], [fleet.Reset])
                self.assertEqual(json.loads(json.dumps(self.consumer.save("door"))), good)
        for form in (good, json.dumps(good), json.dumps(good).encode(), without("host")):
            consumer = fleet.Consumer()
            self.assertEqual(consumer.restore("door", form), [])
            self.assertEqual(consumer.holes("door"), self.consumer.holes("door"))
            self.assertEqual(consumer.receive(f"{TOPIC}/credential", json.dumps({"epoch": epoch, "sequence": 5})), [])
        for name in ("", "a b", "x" * 65):
            self.assertEqual([type(one) for one in self.consumer.restore(name, good)], [fleet.Malformed])
        self.assertEqual(self.consumer.hosts, ["door"])

    def test_a_host_that_is_silent_expires(self) -> None:
        self.online()
        self.receive("health", {"session": "s1"})
        self.now = 100
        self.online()
        self.assertEqual(self.consumer.tick(349), [fleet.Document(host="door", kind="health", content=None)])
        self.assertIn(
            fleet.Presence(host="door", is_online=False, session="s1", reason="expired"), self.consumer.tick(350)
        )
        self.assertIsNone(self.consumer.deadline)
        self.now = 400
        self.assertIn(fleet.Presence(host="door", is_online=True, session="s1"), self.online())

    def test_a_retained_message_has_the_rest_of_its_time(self) -> None:
        self.receive("state", STATE, expires=20)
        self.assertEqual(self.consumer.deadline, 20)
        self.assertEqual(presence(self.consumer.tick(20), "door"), ["expired"])

    def test_a_new_connection_gives_hosts_time(self) -> None:
        self.online()
        self.consumer.connected(240)
        self.assertEqual(self.consumer.tick(480), [])
        self.assertEqual(presence(self.consumer.tick(490), "door"), ["expired"])

    def test_an_empty_message_removes(self) -> None:
        self.online()
        self.receive("health", {"session": "s1"})
        self.assertEqual(self.receive("health", b""), [fleet.Document(host="door", kind="health", content=None)])
        self.assertEqual(presence(self.receive("state", b""), "door"), ["forgotten"])
        self.assertEqual(self.receive("credential", b""), [])

    def test_a_wrong_clock_does_not_count(self) -> None:
        self.online(clock=False)
        self.assertEqual(events(self.event(1, time=7, uptime=2_000, boot="b"))[0].time, 7)
        self.assertIn(fleet.Clock(host="door", boot="b", offset=4_000), self.online(clock=True))
        self.assertEqual(events(self.event(2, time=7, uptime=2_000, boot="b"))[0].time, 6_000)
        self.assertEqual(events(self.event(3, time=7, uptime=2_000, boot="another"))[0].time, 7)

    # MARK: Foreign bytes

    def test_wrong_messages_are_named_and_change_nothing(self) -> None:
        wrong: list[tuple[str, bytes]] = [
            ("credential", b"hello"),
            ("credential", b"[]"),
            ("credential", b"{}"),
            ("credential", b'{"epoch":"e"}'),
            ("credential", b'{"epoch":"","sequence":1}'),
            ("credential", b'{"epoch":"e","sequence":0}'),
            ("credential", b'{"epoch":"e","sequence":true}'),
            ("credential", b'{"epoch":"e","sequence":1.5}'),
            ("credential", b'{"epoch":"e","sequence":99999999999999999999}'),
            ("credential", b'{"epoch":"e","sequence":' + b"9" * 10_000 + b"}"),
            ("credential", b'{"epoch":"\\ud800","sequence":1}'),
            ("credential", b'{"epoch":"e","sequence":1,"x":NaN}'),
            ("credential", b'{"epoch":"e","sequence":1,"x":1e999}'),
            ("credential", b'{"epoch":"e","sequence":1,"x":"\xff"}'),
            ("credential", b'{"x":' + b"[" * 60_000),
            ("credential", b'{"x":"' + b"x" * 70_000 + b'"}'),
            ("state", b'{"state":"online"}'),
            ("state", b'{"state":"away","session":"s"}'),
            ("state", b'{"state":["online"],"session":{}}'),
            ("health", b'{"checks":[]}'),
            ("readers", b'{"session":7}'),
        ]
        for kind, payload in wrong:
            with self.subTest(payload[:40]):
                self.assertEqual([type(one) for one in self.receive(kind, payload)], [fleet.Malformed])
        self.assertEqual(self.holes(), [])
        self.assertEqual([type(one) for one in self.event(1)], [fleet.Arrival])

    def test_wrong_members_do_not_lose_the_event(self) -> None:
        gaps: list[Any] = [
            7,
            "x",
            [[]],
            [7],
            [{}],
            [{"reason": 1}],
            [{"reason": "r", "from": "1", "to": [], "missed": {}}],
            [{"reason": "queueFull", "from": 9, "to": 2}],
            [{"reason": "queueFull", "from": 1, "to": 1 << 53}],
        ]
        for number, gap in enumerate(gaps, 1):
            with self.subTest(gap):
                self.assertEqual(len(events(self.event(number, gap=gap, time=[], uptime="x", boot=7))), 1)
        self.online(queue=7, streams={"credential": 7, "opening": {"epoch": [], "last": "x"}}, heartbeat="x", boot=[])
        self.assertTrue(self.consumer.is_online("door"))
        self.assertEqual(self.holes(), [])

    def test_other_topics_are_left_alone(self) -> None:
        for topic in (
            "homeassistant/device/badged_door/config",
            "badged/2/door/state",
            "badged/1",
            f"{TOPIC}/later",
            f"{TOPIC}/state/x",
        ):
            self.assertEqual(self.consumer.receive(topic, b"{}"), [])
        for host in ("", "a b", "x" * 65, "ä"):
            self.assertEqual(
                [type(one) for one in self.consumer.receive(f"badged/1/{host}/state", b"{}")], [fleet.Malformed]
            )
        self.assertEqual(self.consumer.hosts, [])

    def test_changed_bytes_of_recordings_raise_nothing(self) -> None:
        chance = random.Random(1)
        lines = [line for name in RECORDINGS for line in recording(name)[1] if "topic" in line]
        for _ in range(20_000):
            line = chance.choice(lines)
            payload = bytearray(line["payload"].encode())
            for _ in range(chance.randrange(1, 4)):
                if payload:
                    payload[chance.randrange(len(payload))] = chance.choice(b'0123456789"{}[],:\x00\xffabc')
            self.consumer.receive(line["topic"], bytes(payload), now=0)
        saved = json.loads(json.dumps({host: self.consumer.save(host) for host in self.consumer.hosts}))
        for host, content in saved.items():
            self.assertEqual(fleet.Consumer().restore(host, content), [])

    def test_a_hostile_host_does_not_fill_the_memory(self) -> None:
        for number in range(20_000):
            self.event(number * 2 + 1)
            self.event(1, epoch=f"e{number}")
            self.online(f"s{number}", boot=f"b{number}")
            self.receive("health", {"session": f"x{number}"})
        self.assertLess(len(json.dumps(self.consumer.save("door"))), 100_000)
        self.assertLess(len(self.consumer._alarms), 10)


class PlayedClient:
    """In place of the client of paho-mqtt: each step of `plan` is what one call of `loop` does."""

    badged_connect = None

    def __init__(self, *plan: Callable[[PlayedClient], int]) -> None:
        self.plan = list(plan)
        self.is_up = False
        self.pauses: list[float] = []
        self.subscriptions: list[tuple[str, int]] = []
        self.connections = 0
        self.on_connect: Any = None
        self.on_subscribe: Any = None
        self.on_message: Any = None

    def connect(self, *_: object, **__: object) -> None:
        self.connections += 1

    def subscribe(self, topic: str, qos: int) -> None:
        self.subscriptions.append((topic, qos))

    def is_connected(self) -> bool:
        return self.is_up

    def loop(self, pause: float) -> int:
        self.pauses.append(pause)
        if not self.plan:
            raise EndOfPlan
        return self.plan.pop(0)(self)


class EndOfPlan(Exception):
    pass


def accepted(client: PlayedClient) -> int:
    client.is_up = True
    client.on_connect(client, None, None, types.SimpleNamespace(value=0))
    return 0


def refused(client: PlayedClient) -> int:
    client.on_connect(client, None, None, types.SimpleNamespace(value=0x87))
    return 0


def lost(client: PlayedClient) -> int:
    client.is_up = False
    return 7


def message(kind: str, content: Mapping[str, Any]) -> Callable[[PlayedClient], int]:
    def give(client: PlayedClient) -> int:
        properties = types.SimpleNamespace(MessageExpiryInterval=20)
        payload = json.dumps(content).encode()
        client.on_message(
            client, None, types.SimpleNamespace(topic=f"{TOPIC}/{kind}", payload=payload, properties=properties)
        )
        return 0

    return give


class Adapter(unittest.TestCase):
    def run_plan(self, *plan: Callable[[PlayedClient], int]) -> tuple[PlayedClient, list[fleet.News], list[str]]:
        client, news, lines = PlayedClient(*plan), list[fleet.News](), list[str]()
        with unittest.mock.patch("time.sleep"), self.assertRaises(EndOfPlan):
            mqtt.run(client, "broker", 1883, fleet.Consumer(), news.extend, log=lines.append)
        return client, news, lines

    def test_it_subscribes_and_passes_on_what_comes(self) -> None:
        client, news, lines = self.run_plan(accepted, message("state", STATE))
        self.assertEqual(client.subscriptions, [("badged/1/+/+", 1)])
        self.assertEqual(presence(news, "door"), ["online"])
        self.assertEqual(lines, [])
        self.assertEqual(client.pauses[0], 30)
        # The rest of the expiry.
        self.assertLessEqual(client.pauses[-1], 20)
        self.assertGreater(client.pauses[-1], 10)

    def test_a_refusal_and_a_lost_connection_are_told_and_tried_again(self) -> None:
        client, _, lines = self.run_plan(refused, accepted, lost)
        self.assertEqual(client.connections, 3)
        self.assertIn("the broker refuses the connection", lines[0])
        self.assertIn("the connection to the broker has ended: error 7", lines[1])

    def test_without_a_connection_it_waits_and_nothing_expires(self) -> None:
        with unittest.mock.patch("time.monotonic", side_effect=itertools.count(0, 15)):
            client, news, _ = self.run_plan(accepted, message("state", STATE), lost, lambda client: 0, lambda client: 0)
        self.assertEqual(client.pauses[-2:], [30, 30])
        self.assertEqual(presence(news, "door"), ["online"])

    def test_what_cannot_be_stored_ends_the_run(self) -> None:
        def fail(news: list[fleet.News]) -> None:
            raise OverflowError

        with self.assertRaises(OverflowError):
            mqtt.run(PlayedClient(accepted, message("state", STATE)), "broker", 1883, fleet.Consumer(), fail)


if __name__ == "__main__":
    unittest.main()

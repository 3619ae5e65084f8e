#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the recordings of clients/python/tests/fleet with badged-mqtt and a real mosquitto; the README.md there says more.

record_fleet.py BINARIES FOLDER [NAME...]: writes NAME.jsonl into the folder, without a name all.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import brokers
from brokers import Broker, FakeBadged, Host, Link
from harness import free_port, until

binaries, folder, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
work = tempfile.mkdtemp(prefix="badged-record.")
brokers.use(binaries, work)
PLAIN = "allow_anonymous true"


class Recording:
    """The messages of one consumer. `taps` has the ids of all taps that a badged has read, by its host."""

    def __init__(self, name):
        self.name, self.lines, self.taps, self.began = name, [], {}, time.monotonic()
        self.clients, self.port, self.broker, self.host = [], free_port(), None, None
        self.badged = FakeBadged(os.path.join(work, name + ".sock"))
        # The newest content of `state` at the broker, which another client watches.
        self.told = {}

    def add(self, **line):
        self.lines.append({"at": round(time.monotonic() - self.began, 3), **line})

    def listen(self, port, session=3600, name="log", version=5):
        """Connects and stays connected. A session of 0 ends with the connection."""
        from paho.mqtt import client as paho
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties
        client = paho.Client(client_id=name, protocol=paho.MQTTv5) if version == 5 else paho.Client(client_id=name)
        ready = threading.Event()

        def connected(client, *more):
            self.add(connected=True)
            client.subscribe("badged/1/#", 1)

        def received(client, data, message):
            line = {"topic": message.topic, "payload": message.payload.decode()}
            if message.retain:
                line["retained"] = True
            if (expires := getattr(getattr(message, "properties", None), "MessageExpiryInterval", None)) is not None:
                line["expires"] = expires
            self.add(**line)

        client.on_connect, client.on_message = connected, received
        client.on_subscribe = lambda *more: ready.set()
        client.on_disconnect = lambda *more: self.add(connected=False)
        client.reconnect_delay_set(1, 1)
        if version == 5:
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = session
            client.connect("127.0.0.1", port, clean_start=False, properties=properties)
        else:
            client.connect("127.0.0.1", port)
        client.loop_start()
        until(ready.is_set)
        self.clients.append(client)
        return client

    def payloads(self, kind, host=None):
        return [json.loads(line["payload"]) for line in list(self.lines) if line.get("payload") and line["topic"].endswith("/" + kind)
                and (host is None or line["topic"].split("/")[-2] == host)]

    def state(self, host=None):
        return (self.payloads("state", host) or [{}])[-1]

    def begin(self, persistence=False, session=3600, version=5, link=None, watches=False, **settings):
        """Starts a broker if there is none, the consumer, and the host `door` with a badged that watches. `link` is a fault
        between host and broker, `settings` are those of badged-mqtt."""
        self.broker = Broker.at.get(self.port) or Broker(self.name, self.port, PLAIN, persistence=persistence)
        if watches:
            self.watch(self.port)
        client = self.listen(self.port, session=session, version=version)
        self.host = Host("door", link.port if link else self.port, self.badged.path, **settings)
        self.online(self.host)
        return client

    def watch(self, port):
        """Watches `state` with a client that is not recorded."""
        client = brokers.paho_client("watch", port, [], "badged/1/+/state")
        client.on_message = lambda client, data, message: self.told.update(json.loads(message.payload))
        self.clients.append(client)

    def acknowledged(self, last):
        """Waits until the host says that the broker has all events up to a number."""
        until(lambda: self.told.get("streams", {}).get("credential", {}).get("last") == last and
              self.told["queue"]["waiting"] == 0)

    def connections(self):
        return sum(line.get("connected") is True for line in list(self.lines))

    def online(self, host=None):
        """Waits until the process of the host that runs now watches."""
        host = host or self.host
        until(lambda: (state := self.state(host.topic)).get("watching") and state["uptime"] >= host.started)

    def arrives(self):
        until(lambda: any(event.get("id") == self.badged.told[-1][2] for event in self.payloads("credential")))

    def tap(self, count=1, badged=None):
        for number in range(count):
            until((badged or self.badged).tap)

    def restart(self, taps=0):
        """Kills the broker and starts it again; people tap meanwhile."""
        self.broker.end()
        self.tap(taps)
        before = self.connections()
        self.broker.start()
        until(lambda: self.connections() > before)

    def write(self, how):
        for client in self.clients:
            client.on_disconnect = None
            client.disconnect()
            client.loop_stop()
        with open(os.path.join(folder, self.name + ".jsonl"), "w", encoding="utf-8") as file:
            # What is known without the messages: the taps of each host in their order.
            file.write(json.dumps({"how": how, "taps": self.taps}) + "\n")
            for line in self.lines:
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
        print(f"{self.name}: {len(self.lines)} lines, {os.path.getsize(file.name)} bytes", flush=True)


def queue_of(host):
    """The bytes of the queue, with what is not in the file yet."""
    paths = (os.path.join(host.folder, name) for name in ("queue.db", "queue.db-wal"))
    return b"".join(open(path, "rb").read() for path in paths if os.path.exists(path))


# The calendar is late by as many seconds as the file $SHIFT has bytes, and then is not synchronised.
CLOCK = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *time) {
    struct stat file;
    int result = (int)syscall(SYS_clock_gettime, id, time);
    if (id == CLOCK_REALTIME && stat(getenv("SHIFT"), &file) == 0) time->tv_sec -= file.st_size;
    return result;
}
int adjtimex(struct timex *state) {
    struct stat file;
    state->status = stat(getenv("SHIFT"), &file) == 0 && file.st_size ? STA_UNSYNC : 0;
    return state->status ? TIME_ERROR : TIME_OK;
}
int clock_adjtime(clockid_t id, struct timex *state) { (void)id; return adjtimex(state); }
"""


def scenario(function):
    name = function.__name__.replace("_", "-")
    if wanted and name not in wanted:
        return
    record = Recording(name)
    function(record)
    record.taps = record.taps or {"door": [entry[2] for entry in record.badged.told]}
    if record.host and record.host.process.poll() is None:
        record.host.end()
    for broker in set(Broker.at.values()):
        broker.end()
    Broker.at.clear()
    shutil.rmtree(os.path.join(work, "door"), ignore_errors=True)
    record.write(function.__doc__.strip())


# MARK: Brokers
@scenario
def broker_restarts(record):
    """The broker, which stores nothing, is killed twice, and taps go on. The consumer loses its session with it."""
    record.begin()
    for turn in range(2):
        record.tap(3)
        record.arrives()
        record.tap(3)
        record.restart(taps=3)
        record.tap()
        record.arrives()


@scenario
def broker_with_persistence_restarts(record):
    """The broker stores at each change, and is killed while taps go on."""
    record.begin(persistence=True)
    record.tap(5)
    record.restart(taps=5)
    record.tap()
    record.arrives()


@scenario
def broker_drops(record):
    """The broker keeps 5 messages for a consumer that is away, drops the newer ones, and acknowledges all."""
    # mosquitto takes the last of two lines.
    Broker(record.name, record.port, PLAIN + "\nmax_queued_messages 5\nmax_inflight_messages 1")
    client = record.begin(watches=True)
    record.tap(3)
    record.arrives()
    client.loop_stop()
    client.disconnect()
    client.loop()
    record.tap(20)
    record.acknowledged(23)
    client.reconnect()
    client.loop_start()
    until(lambda: record.state().get("streams", {}).get("credential", {}).get("last", 0) >= 23)
    record.tap(2)
    record.arrives()


# MARK: Hosts
@scenario
def host_restarts(record):
    """badged-mqtt is killed six times while people tap, also before it has stored what it has read."""
    record.begin()
    for turn in range(6):
        record.tap(3)
        record.arrives()
        record.tap(2)
        record.host.end()
        record.host.start()
        record.online()
    record.tap()
    record.arrives()
    record.host.end(signal.SIGTERM)
    until(lambda: record.state().get("reason") == "stopped")


@scenario
def links_cut(record):
    """The link of the host is cut after each of the first packets of either side, so events come twice."""
    link = Link(record.port)
    record.begin(persistence=True, link=link)
    for side in (0, 1):
        for count in range(2, 9, 2):
            link.packets = (count, None) if side == 0 else (None, count)
            link.is_cut, link.is_cut = True, False
            before = link.connections
            for number in range(3):
                record.badged.tap()
            if count == 2:
                record.restart()
            until(lambda: link.connections > before)
    link.packets = (None, None)
    record.tap()
    record.arrives()


@scenario
def store_lost(record):
    """The queue file is destroyed while events wait in it, and badged-mqtt begins a new epoch; twice."""
    record.begin(persistence=True)
    record.tap(3)
    record.arrives()
    for turn in range(2):
        record.broker.end()
        record.tap(4)
        record.host.end()
        for name in ("queue.db", "queue.db-wal"):
            path = os.path.join(record.host.folder, name)
            if os.path.exists(path):
                os.truncate(path, 0)
        record.broker.start()
        record.host.start()
        record.online()
        record.tap(3)
        record.arrives()


@scenario
def two_hosts_with_one_name(record):
    """Two hosts have one name: each throws the other off the broker, and each has taps of its own."""
    record.begin()
    record.tap(3)
    other = FakeBadged(os.path.join(work, "other.sock"))
    other.number = 5000
    twin = Host("twin", record.port, other.path)
    twin.edit("host = twin", "host = door")
    twin.end()
    twin.start()
    for turn in range(5):
        record.tap(2)
        record.tap(2, other)
        count = len(record.payloads("state"))
        until(lambda: len(record.payloads("state")) >= count + 4)
    twin.end(signal.SIGTERM)
    record.tap()
    record.arrives()
    until(lambda: record.state().get("state") == "online")
    record.taps = {"door": [entry[2] for badged in (record.badged, other) for entry in badged.told]}


@scenario
def queue_overflows(record):
    """The queue has room for 20 events, and 70 taps come while the broker is away; then again, with a restart."""
    record.begin(persistence=True, more="limit = 20")
    record.tap(2)
    record.arrives()
    record.restart(taps=70)
    record.tap()
    record.arrives()
    record.broker.end()
    record.tap(30)
    until(lambda: record.badged.told[-1][2].encode() in queue_of(record.host))
    record.host.end()
    record.host.start()
    record.broker.start()
    record.tap()
    record.arrives()


@scenario
def gap_reported_twice(record):
    """The broker takes an event with a gap and never acknowledges it; the host drops the event, and reports both."""
    link = Link(record.port)
    record.begin(persistence=True, link=link, more="limit = 20")
    record.tap(2)
    record.arrives()
    record.host.end()
    # Two taps that another client sees, and this host not.
    watcher = brokers.socket.socket(brokers.socket.AF_UNIX)
    watcher.connect(record.badged.path)
    watcher.sendall(b'{"cmd": "START_CREDENTIALS"}\n')
    until(lambda: record.badged.watchers)
    record.tap(2)
    record.host.start()
    record.online()
    link.holds_answers = True
    record.tap(3)
    record.arrives()
    record.restart(taps=40)
    link.holds_answers = False
    record.tap()
    record.arrives()
    watcher.close()


@scenario
def badged_restarts(record):
    """badged ends and begins anew, twice; its documents are emptied meanwhile."""
    record.begin()
    lives = [record.badged]
    for turn in range(2):
        record.tap(2)
        record.arrives()
        record.badged.stop()
        until(lambda: record.state().get("badged") is False)
        record.badged = FakeBadged(record.badged.path)
        lives.append(record.badged)
        record.badged.number = 1000 * len(lives)
        until(lambda: record.badged.watchers)
    record.tap(2)
    record.arrives()
    record.taps = {"door": [entry[2] for badged in lives for entry in badged.told]}


@scenario
def clock_set_back(record):
    """The clock of the host is a month late when badged-mqtt starts, and is set while it runs."""
    library, shift = os.path.join(work, "clock.so"), os.path.join(work, "shift")
    subprocess.run(["clang", "-shared", "-fPIC", "-O", "-x", "c", "-o", library, "-"], input=CLOCK, text=True, check=True)
    os.truncate(os.open(shift, os.O_WRONLY | os.O_CREAT), 3_000_000)
    record.badged.clock = lambda: time.time() - os.path.getsize(shift)
    record.begin(environment={"LD_PRELOAD": library, "SHIFT": shift})
    record.tap(3)
    record.arrives()
    os.truncate(shift, 0)
    record.tap(3)
    record.arrives()
    until(lambda: record.state().get("clock") is True)


# MARK: Presence and documents
@scenario
def consumer_comes_late(record):
    """The consumer begins when one host has long been online, one has stopped, and one was killed."""
    Broker(record.name, record.port, PLAIN)
    early = record.listen(record.port, name="early")
    hosts = {name: Host(name, record.port, record.badged.path) for name in ("online", "stopped", "killed")}
    for host in hosts.values():
        record.online(host)
    record.tap(4)
    until(lambda: all(state["queue"]["waiting"] == 0 and state["streams"]["credential"]["last"] == 4
                      for state in (record.state(name) for name in hosts)))
    hosts["stopped"].end(signal.SIGTERM)
    hosts["killed"].end()
    until(lambda: all(record.state(name)["state"] == "offline" for name in ("stopped", "killed")))
    early.disconnect()
    early.loop_stop()
    for seen in (record.clients, record.lines, record.badged.told):
        seen.clear()
    record.listen(record.port)
    until(lambda: record.payloads("health", "online"))
    record.tap(2)
    record.arrives()
    record.taps = {"online": [entry[2] for entry in record.badged.told]}
    hosts["online"].end()
    until(lambda: record.state("online")["state"] == "offline")


@scenario
def consumer_away(record):
    """The consumer has no session of its own, and is away for ten taps."""
    client = record.begin(session=0, watches=True)
    record.tap(3)
    record.arrives()
    client.disconnect()
    client.loop_stop()
    record.tap(10)
    record.acknowledged(13)
    record.listen(record.port, session=0)
    until(lambda: record.state().get("streams", {}).get("credential", {}).get("last", 0) >= 13)
    record.tap(2)
    record.arrives()


def die(record):
    """Two taps; then the broker, which has stored the documents, dies with the host, and comes back alone."""
    record.tap(2)
    record.arrives()
    until(lambda: b"readers" in open(os.path.join(record.broker.folder, "mosquitto.db"), "rb").read())
    record.broker.end()
    record.host.end()
    record.broker.start()


@scenario
def host_and_broker_die(record):
    """Host and broker die together, so the will is never sent; the broker returns with its retained messages."""
    record.begin(persistence=True, publish="heartbeat = 10")
    die(record)
    time.sleep(30)
    record.add()


@scenario
def old_broker(record):
    """MQTT 3.1.1: nothing expires. Host and broker die together, and the retained online stays for ever."""
    client = record.begin(persistence=True, version=4, broker="version = 3.1.1", publish="heartbeat = 10")
    die(record)
    client.disconnect()
    client.loop_stop()
    record.listen(record.port, version=4, name="again")
    until(lambda: record.lines[-1].get("retained"))
    time.sleep(30)
    record.add()


@scenario
def settings_and_removal(record):
    """New settings, an end, and `badged-mqtt --forget`."""
    record.begin()
    record.tap()
    record.host.edit("[publish]", "[publish]\nheartbeat = 50")
    record.host.process.send_signal(signal.SIGHUP)
    until(lambda: record.state().get("heartbeat") == 50)
    record.tap()
    record.arrives()
    record.host.end(signal.SIGTERM)
    until(lambda: record.state().get("reason") == "stopped")
    record.host.run("--forget")
    until(lambda: any(line.get("topic", "").endswith("/state") and not line["payload"] for line in list(record.lines)))


# MARK: Order
@scenario
def two_ways(record):
    """The consumer reads over two connections, one of them slow: each event comes twice, and the order is lost."""
    Broker(record.name, record.port, PLAIN)
    link = Link(record.port)
    link.rate = 4_000
    record.listen(link.port, name="slow")
    record.begin()
    record.tap(15)
    record.arrives()
    record.host.end(signal.SIGTERM)
    until(lambda: sum(state["state"] == "offline" for state in record.payloads("state")) >= 2)


shutil.rmtree(work, ignore_errors=True)

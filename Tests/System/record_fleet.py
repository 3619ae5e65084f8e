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
        self.name, self.lines, self.taps, self.begin = name, [], {}, time.monotonic()
        self.clients = []
        # The newest content of `state` at the broker, which another client watches.
        self.told = {}

    def add(self, **line):
        self.lines.append({"at": round(time.monotonic() - self.begin, 3), **line})

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

    def online(self, host):
        """Waits until the process of the host that runs now watches."""
        until(lambda: (state := self.state(host.topic)).get("watching") and state["uptime"] >= host.started)

    def arrives(self, badged):
        until(lambda: any(event.get("id") == badged.told[-1][2] for event in self.payloads("credential")))

    def tap(self, badged, count=1):
        for number in range(count):
            until(badged.tap)

    def finish(self, host, *badgeds):
        """`badgeds` are those of the host, in the order of their lives."""
        self.taps.setdefault(host, []).extend(entry[2] for badged in badgeds for entry in badged.told)

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


def scenario(function):
    name = function.__name__.replace("_", "-")
    if wanted and name not in wanted:
        return
    record, port, badged = Recording(name), free_port(), FakeBadged(os.path.join(work, name + ".sock"))
    function(record, port, badged)
    for broker in set(Broker.at.values()):
        broker.end()
    Broker.at.clear()
    shutil.rmtree(os.path.join(work, "door"), ignore_errors=True)
    record.write(function.__doc__.strip())


# MARK: Brokers
@scenario
def broker_restarts(record, port, badged):
    """The broker, which stores nothing, is killed twice, and taps go on. The consumer loses its session with it."""
    broker = Broker(record.name, port, PLAIN)
    record.listen(port)
    host = Host("door", port, badged.path)
    record.online(host)
    for turn in range(2):
        record.tap(badged, 3)
        record.arrives(badged)
        record.tap(badged, 3)
        broker.end()
        record.tap(badged, 3)
        before = record.connections()
        broker.start()
        record.tap(badged)
        until(lambda: record.connections() > before)
        record.tap(badged)
        record.arrives(badged)
    record.finish("door", badged)
    host.end()


@scenario
def broker_with_persistence_restarts(record, port, badged):
    """The broker stores at each change, and is killed while taps go on."""
    broker = Broker(record.name, port, PLAIN, persistence=True)
    record.listen(port)
    host = Host("door", port, badged.path)
    record.online(host)
    record.tap(badged, 5)
    broker.end()
    record.tap(badged, 5)
    broker.start()
    record.tap(badged)
    record.arrives(badged)
    record.finish("door", badged)
    host.end()


@scenario
def broker_drops(record, port, badged):
    """The broker keeps 5 messages for a consumer that is away, drops the newer ones, and acknowledges all."""
    broker = Broker(record.name, port, PLAIN)
    broker.end()
    with open(broker.file, encoding="utf-8") as file:
        text = file.read().replace("max_queued_messages 100000", "max_queued_messages 5\nmax_inflight_messages 1")
    with open(broker.file, "w", encoding="utf-8") as file:
        file.write(text)
    broker.start()
    record.watch(port)
    client = record.listen(port)
    host = Host("door", port, badged.path)
    record.online(host)
    record.tap(badged, 3)
    record.arrives(badged)
    client.loop_stop()
    client.disconnect()
    client.loop()
    record.tap(badged, 20)
    record.acknowledged(23)
    client.reconnect()
    client.loop_start()
    until(lambda: record.state().get("streams", {}).get("credential", {}).get("last", 0) >= 23)
    record.tap(badged, 2)
    record.arrives(badged)
    record.finish("door", badged)
    host.end()


# MARK: Hosts
@scenario
def host_restarts(record, port, badged):
    """badged-mqtt is killed six times while people tap, also before it has stored what it has read."""
    Broker(record.name, port, PLAIN)
    record.listen(port)
    host = Host("door", port, badged.path)
    record.online(host)
    for turn in range(6):
        record.tap(badged, 3)
        record.arrives(badged)
        record.tap(badged, 2)
        host.end()
        host.start()
        record.online(host)
    record.tap(badged)
    record.arrives(badged)
    record.finish("door", badged)
    host.end(signal.SIGTERM)
    until(lambda: record.state().get("reason") == "stopped")


@scenario
def links_cut(record, port, badged):
    """The link of the host is cut after each of the first packets of either side, so events come twice."""
    broker = Broker(record.name, port, PLAIN, persistence=True)
    record.listen(port)
    link = Link(port)
    host = Host("door", link.port, badged.path)
    record.online(host)
    for side in (0, 1):
        for count in range(2, 9, 2):
            link.packets = (count, None) if side == 0 else (None, count)
            link.is_cut, link.is_cut = True, False
            before = link.connections
            for number in range(3):
                badged.tap()
            if count == 2:
                broker.end()
                broker.start()
            until(lambda: link.connections > before)
    link.packets = (None, None)
    record.tap(badged)
    record.arrives(badged)
    record.finish("door", badged)
    host.end()


@scenario
def store_lost(record, port, badged):
    """The queue file is destroyed while events wait in it, and badged-mqtt begins a new epoch; twice."""
    broker = Broker(record.name, port, PLAIN, persistence=True)
    record.listen(port)
    host = Host("door", port, badged.path)
    record.online(host)
    record.tap(badged, 3)
    record.arrives(badged)
    for turn in range(2):
        broker.end()
        record.tap(badged, 4)
        host.end()
        for name in ("queue.db", "queue.db-wal"):
            path = os.path.join(host.folder, name)
            if os.path.exists(path):
                os.truncate(path, 0)
        broker.start()
        host.start()
        record.online(host)
        record.tap(badged, 3)
        record.arrives(badged)
    record.finish("door", badged)
    host.end()


@scenario
def two_hosts_with_one_name(record, port, badged):
    """Two hosts have one name: each throws the other off the broker, and each has taps of its own."""
    Broker(record.name, port, PLAIN)
    record.listen(port)
    host = Host("door", port, badged.path)
    record.online(host)
    record.tap(badged, 3)
    other = FakeBadged(os.path.join(work, "other.sock"))
    other.number = 5000
    twin = Host("twin", port, other.path)
    twin.edit("host = twin", "host = door")
    twin.end()
    twin.start()
    for turn in range(5):
        record.tap(badged, 2)
        record.tap(other, 2)
        count = len(record.payloads("state"))
        until(lambda: len(record.payloads("state")) >= count + 4)
    twin.end(signal.SIGTERM)
    record.tap(badged)
    record.arrives(badged)
    until(lambda: record.state().get("state") == "online")
    record.finish("door", badged, other)
    host.end()


@scenario
def queue_overflows(record, port, badged):
    """The queue has room for 20 events, and 70 taps come while the broker is away; then again, with a restart."""
    broker = Broker(record.name, port, PLAIN, persistence=True)
    record.listen(port)
    host = Host("door", port, badged.path, more="limit = 20")
    record.online(host)
    record.tap(badged, 2)
    record.arrives(badged)
    for turn in range(2):
        broker.end()
        record.tap(badged, 70 if turn == 0 else 30)
        if turn == 1:
            until(lambda: badged.told[-1][2].encode() in queue_of(host))
            host.end()
            host.start()
        broker.start()
        record.tap(badged)
        record.arrives(badged)
    record.finish("door", badged)
    host.end()


@scenario
def gap_reported_twice(record, port, badged):
    """The broker takes an event with a gap and never acknowledges it; the host drops the event, and reports both."""
    broker = Broker(record.name, port, PLAIN, persistence=True)
    record.listen(port)
    link = Link(port)
    host = Host("door", link.port, badged.path, more="limit = 20")
    record.online(host)
    record.tap(badged, 2)
    record.arrives(badged)
    host.end()
    # Two taps that another client sees, and this host not.
    watcher = brokers.socket.socket(brokers.socket.AF_UNIX)
    watcher.connect(badged.path)
    watcher.sendall(b'{"cmd": "START_CREDENTIALS"}\n')
    until(lambda: badged.watchers)
    record.tap(badged, 2)
    host.start()
    record.online(host)
    link.holds_answers = True
    record.tap(badged, 3)
    record.arrives(badged)
    broker.end()
    record.tap(badged, 40)
    before = record.connections()
    broker.start()
    until(lambda: record.connections() > before)
    link.holds_answers = False
    record.tap(badged)
    record.arrives(badged)
    record.finish("door", badged)
    watcher.close()
    host.end()


@scenario
def badged_restarts(record, port, badged):
    """badged ends and begins anew, twice; its documents are emptied meanwhile."""
    Broker(record.name, port, PLAIN)
    record.listen(port)
    host = Host("door", port, badged.path)
    lives = [badged]
    record.online(host)
    for turn in range(2):
        record.tap(lives[-1], 2)
        record.arrives(lives[-1])
        lives[-1].stop()
        until(lambda: record.state().get("badged") is False)
        lives.append(FakeBadged(badged.path))
        lives[-1].number = 1000 * len(lives)
        until(lambda: lives[-1].watchers)
    record.tap(lives[-1], 2)
    record.arrives(lives[-1])
    record.finish("door", *lives)
    host.end()


@scenario
def clock_set_back(record, port, badged):
    """The clock of the host is a month late when badged-mqtt starts, and is set while it runs."""
    Broker(record.name, port, PLAIN)
    record.listen(port)
    library, shift = os.path.join(work, "clock.so"), os.path.join(work, "shift")
    source = """
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
    subprocess.run(["clang", "-shared", "-fPIC", "-O", "-x", "c", "-o", library, "-"], input=source, text=True, check=True)
    os.truncate(os.open(shift, os.O_WRONLY | os.O_CREAT), 3_000_000)
    badged.clock = lambda: time.time() - os.path.getsize(shift)
    host = Host("door", port, badged.path, environment={"LD_PRELOAD": library, "SHIFT": shift})
    record.online(host)
    record.tap(badged, 3)
    record.arrives(badged)
    os.truncate(shift, 0)
    record.tap(badged, 3)
    record.arrives(badged)
    until(lambda: record.state().get("clock") is True)
    record.finish("door", badged)
    host.end()


# MARK: Presence and documents
@scenario
def consumer_comes_late(record, port, badged):
    """The consumer begins when one host has long been online, one has stopped, and one was killed."""
    Broker(record.name, port, PLAIN)
    early = record.listen(port, name="early")
    hosts = {name: Host(name, port, badged.path) for name in ("online", "stopped", "killed")}
    for host in hosts.values():
        record.online(host)
    record.tap(badged, 4)
    record.arrives(badged)
    until(lambda: all(event["queue"]["waiting"] == 0 and event["streams"]["credential"]["last"] == 4
                      for event in (record.state(name) for name in hosts)))
    hosts["stopped"].end(signal.SIGTERM)
    hosts["killed"].end()
    until(lambda: all(record.state(name)["state"] == "offline" for name in ("stopped", "killed")))
    early.disconnect()
    early.loop_stop()
    record.clients.clear()
    record.lines.clear()
    badged.told.clear()
    record.listen(port)
    until(lambda: record.payloads("health", "online"))
    record.tap(badged, 2)
    record.arrives(badged)
    record.finish("online", badged)
    hosts["online"].end()
    until(lambda: record.state("online")["state"] == "offline")


@scenario
def consumer_away(record, port, badged):
    """The consumer has no session of its own, and is away for ten taps."""
    Broker(record.name, port, PLAIN)
    record.watch(port)
    client = record.listen(port, session=0)
    host = Host("door", port, badged.path)
    record.online(host)
    record.tap(badged, 3)
    record.arrives(badged)
    client.disconnect()
    client.loop_stop()
    record.tap(badged, 10)
    record.acknowledged(13)
    record.listen(port, session=0)
    until(lambda: record.state().get("streams", {}).get("credential", {}).get("last", 0) >= 13)
    record.tap(badged, 2)
    record.arrives(badged)
    record.finish("door", badged)
    host.end()


@scenario
def host_and_broker_die(record, port, badged):
    """Host and broker die together, so the will is never sent; the broker returns with its retained messages."""
    broker = Broker(record.name, port, PLAIN, persistence=True)
    record.listen(port)
    host = Host("door", port, badged.path, publish="heartbeat = 10")
    record.online(host)
    record.tap(badged, 2)
    record.arrives(badged)
    until(lambda: b"readers" in open(os.path.join(broker.folder, "mosquitto.db"), "rb").read())
    broker.end()
    host.end()
    broker.start()
    time.sleep(30)
    record.add()
    record.finish("door", badged)


@scenario
def old_broker(record, port, badged):
    """MQTT 3.1.1: nothing expires. Host and broker die together, and the retained online stays for ever."""
    broker = Broker(record.name, port, PLAIN, persistence=True)
    client = record.listen(port, version=4)
    host = Host("door", port, badged.path, broker="version = 3.1.1", publish="heartbeat = 10")
    record.online(host)
    record.tap(badged, 2)
    record.arrives(badged)
    until(lambda: b"readers" in open(os.path.join(broker.folder, "mosquitto.db"), "rb").read())
    client.disconnect()
    client.loop_stop()
    broker.end()
    host.end()
    broker.start()
    record.listen(port, version=4, name="again")
    until(lambda: record.lines[-1].get("retained"))
    time.sleep(30)
    record.add()
    record.finish("door", badged)


@scenario
def settings_and_removal(record, port, badged):
    """New settings, an end, and `badged-mqtt --forget`."""
    Broker(record.name, port, PLAIN)
    record.listen(port)
    host = Host("door", port, badged.path)
    record.online(host)
    record.tap(badged)
    host.edit("[publish]", "[publish]\nheartbeat = 50")
    host.process.send_signal(signal.SIGHUP)
    until(lambda: record.state().get("heartbeat") == 50)
    record.tap(badged)
    record.arrives(badged)
    host.end(signal.SIGTERM)
    until(lambda: record.state().get("reason") == "stopped")
    host.run("--forget")
    until(lambda: any(line.get("topic", "").endswith("/state") and not line["payload"] for line in list(record.lines)))
    record.finish("door", badged)


# MARK: Order
@scenario
def two_ways(record, port, badged):
    """The consumer reads over two connections, one of them slow: each event comes twice, and the order is lost."""
    Broker(record.name, port, PLAIN)
    link = Link(port)
    link.rate = 4_000
    record.listen(link.port, name="slow")
    record.listen(port, name="fast")
    host = Host("door", port, badged.path)
    record.online(host)
    record.tap(badged, 15)
    record.arrives(badged)
    host.end(signal.SIGTERM)
    until(lambda: sum(event["state"] == "offline" for event in record.payloads("state")) >= 2)
    record.finish("door", badged)


shutil.rmtree(work, ignore_errors=True)

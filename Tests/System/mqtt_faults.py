# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults around badged-mqtt, with a real mosquitto: the table in docs/fleet.md, Faults.

Started by mqtt-faults.sh with the folder of the programs and a folder for files.
"""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

import brokers
from brokers import Broker, Consumer, FakeBadged, Host, Link, RawBroker, arrives, judge, online, tap_arrives
from harness import check, finish, free_port, until

binaries, work = sys.argv[1], sys.argv[2]
brokers.use(binaries, work)
sock = os.path.join(work, "badged.sock")
shift, nameless = os.path.join(work, "shift"), os.path.join(work, "nameless")
preload = {"LD_PRELOAD": os.path.join(work, "faults.so"), "SHIFT": shift, "NAMELESS": nameless}
badged = FakeBadged(sock)

# MARK: A broker that says nothing, which takes long, and so runs beside the others
quiet_port = free_port()
quiet_broker = Broker("quiet", quiet_port, "allow_anonymous true")
quiet_consumer = Consumer("quiet", quiet_port)
quiet_link = Link(quiet_port)
quiet_link.is_silent = True
quiet = Host("quiet", quiet_link.port, FakeBadged(os.path.join(work, "quiet.sock")).path)
ghost_port = free_port()
ghost_broker = Broker("ghost", ghost_port, "allow_anonymous true", persistence=True)
ghost_consumer = Consumer("ghost", ghost_port)
ghost = Host("ghost", ghost_port, sock, publish="heartbeat = 10")
online(ghost_consumer, ghost)
until(lambda: b"ghost" in open(os.path.join(ghost_broker.folder, "mosquitto.db"), "rb").read())
ghost_broker.end()
ghost.end()
ghost_began = time.monotonic()

# MARK: The clock
port = free_port()
broker = Broker("clock", port, "allow_anonymous true")
consumer = Consumer("clock", port)
host = Host("clock", port, sock, environment=preload)
check("a tap arrives", online(consumer, host) and tap_arrives(consumer, badged), host.log())
os.truncate(os.open(shift, os.O_WRONLY | os.O_CREAT), 3_000_000)
for number in range(20):
    badged.tap()
check("clock set back by a month: taps arrive", tap_arrives(consumer, badged), host.log())
host.end()
host.start()
online(consumer, host)
check("and after a restart", tap_arrives(consumer, badged), host.log())
judge("clock set back", [badged], consumer)
uptimes = list({(event["epoch"], event["sequence"]): event["uptime"] for event in consumer.events()}.values())
check("uptime goes on, so a consumer can correct the time", uptimes == sorted(uptimes), uptimes)
os.remove(shift)

# MARK: Names
open(nameless, "w", encoding="ascii").close()
host.end()
host.start()
check("a name that is not found is told", until(lambda: "no connection to the broker" in host.log().split("connected to badged")[-1]),
      host.log())
until(badged.tap)
os.remove(nameless)
check("when it is found, the tap arrives", arrives(consumer, badged), host.log())

# MARK: Two lives of badged that begin in one second
badged.stop()
lives = [badged]
for number in range(2):
    badged = FakeBadged(sock)
    badged.started = int(lives[0].started) + 0.25 * (number + 1)
    lives.append(badged)
    check("badged starts anew, and its taps arrive", online(consumer, host) and tap_arrives(consumer, badged), host.log())
    badged.stop()
check("a tap of each life arrived", len({e["id"] for e in consumer.events()[-2:]}) <= 2 and
      {one.told[0][2] for one in lives[1:]} <= {e["id"] for e in consumer.events()})

# MARK: A silent badged
badged = FakeBadged(sock, is_silent=True)
until(lambda: badged.clients)
check("a badged that says nothing: the host is online, and not watching", until(
    lambda: consumer.last("state").get("state") == "online" and not consumer.last("state")["watching"]), consumer.last("state"))
badged.stop()
host.edit("openings = yes", "openings = yes\nhealth_interval = 5")
host.end()
badged = FakeBadged(sock)
badged.number = 1_000_000
host.start()
check("then it answers, and taps arrive", online(consumer, host) and tap_arrives(consumer, badged), host.log())
badged.hang()
check("badged hangs within a message: state says that nobody watches", until(
    lambda: consumer.last("state").get("watching") is False and consumer.last("state").get("badged") is False),
      (consumer.last("state"), host.log()))
badged.stop()
badged = FakeBadged(sock)
badged.number = 2_000_000
check("another badged: taps arrive", online(consumer, host) and tap_arrives(consumer, badged), host.log())
check("with the gap daemonAway", [gap["reason"] for gap in consumer.events()[-1].get("gap", [])] == ["daemonAway"],
      consumer.events()[-1])
host.end(signal.SIGTERM)
broker.end()

# MARK: Links
port = free_port()
broker = Broker("links", port, "allow_anonymous true", persistence=True)
consumer = Consumer("links", port)
link = Link(port)
start = len(badged.told)
host = Host("cut", link.port, sock, broker="keepalive = 5")
online(consumer, host)
for side in (0, 1):
    for count in range(16):
        link.packets = (count, None) if side == 0 else (None, count)
        # The connection that is there is cut, too.
        link.is_cut, link.is_cut = True, False
        before = link.connections
        for number in range(3):
            check("a client watches", until(badged.tap)) if count == 0 and number == 0 else badged.tap()
        if count == 0:
            broker.end()
            broker.start()
        until(lambda: link.connections > before)
link.packets = (None, None)
check("link cut after each packet of host and broker: the last tap arrives", arrives(consumer, badged), host.log()[-500:])
badged.told = badged.told[start:]
judge("link cut after each packet", [badged], consumer)
check("it is online again", online(consumer, host), host.log()[-500:])
session = consumer.last("state")["session"]
link.is_cut = True
check("a link that is cut without a sign: the will comes after the keep-alive", until(
    lambda: consumer.last("state").get("reason") == "connectionLost" and consumer.last("state")["session"] == session))
badged.tap()
link.is_cut = False
check("then it is online again, and the tap arrives", online(consumer, host) and arrives(consumer, badged), host.log()[-500:])
link.rate = 20_000
before = link.connections
broker.end()
broker.start()
until(lambda: link.connections > before)
for number in range(300):
    badged.tap()
check("a link of 20 kB a second: 300 taps arrive", arrives(consumer, badged), host.log()[-500:])
link.rate = None
judge("slow link", [badged], consumer)
broker.end()
broker.start()
check("broker with persistence killed and restarted: the consumer's session gets the tap", tap_arrives(consumer, badged))
judge("broker with persistence", [badged], consumer)

# MARK: Two hosts with one name
twin = Host("twin", port, sock)
twin.topic = "cut"
twin.edit("host = twin", "host = cut")
twin.end()
twin.start()
log = os.path.join(broker.folder, "log")
until(lambda: open(log, encoding="utf-8").read().count("as badged-cut") >= 10)
begin, count = time.monotonic(), open(log, encoding="utf-8").read().count("as badged-cut")
until(lambda: open(log, encoding="utf-8").read().count("as badged-cut") >= count + 10)
check("two hosts with one name: the log says so", "two hosts have one name" in host.log(), host.log()[-500:])
check("two hosts with one name take turns, and not more than five times a second", time.monotonic() - begin > 2)
twin.end()
check("when one of them is gone, the other one is online", online(consumer, host) and until(
    lambda: consumer.last("state").get("session") and consumer.last("state")["state"] == "online"))
host.end(signal.SIGTERM)
check("and no ghost is left", until(lambda: consumer.last("state")["state"] == "offline"), consumer.last("state"))
broker.end()

# MARK: Full brokers
badged.told = []
port = free_port()
broker = Broker("crowd", port, "allow_anonymous true\nmax_connections 1")
consumer = Consumer("crowd", port)
guest = Consumer("guest", port, "-C", "100000", waits=False)
host = Host("crowd", port, sock)
check("a broker that takes no more clients: the fault is told", until(
    lambda: "no connection to the broker" in host.log() and not host.status()["connected"]), host.log())
until(badged.tap)
guest.process.kill()
check("when there is room, the tap arrives", arrives(consumer, badged), host.log())
judge("broker without room", [badged], consumer)
host.end(signal.SIGTERM)
broker.end()

badged.told = []
port = free_port()
broker = Broker("small", port, "allow_anonymous true\nmax_queued_messages 20\nmessage_size_limit 1500")
consumer = Consumer("keeper", port)
host = Host("short", port, sock)
online(consumer, host)
consumer.process.kill()
consumer.process.wait()
for number in range(200):
    until(badged.tap)
watcher = Consumer("second", port)
last = until(lambda: watcher.last("state").get("streams", {}).get("credential", {}).get("last", 0) >= 200 and watcher.last("state"))
check("a broker that drops what it has acknowledged: the number in state shows it", last and
      last["streams"]["credential"]["lost"] == 0 and last["queue"]["waiting"] == 0, watcher.last("state"))
host.end(signal.SIGTERM)
broker.end()

# MARK: Brokers with limits
for name, lines, words in (
        ("qos", "max_qos 0", ("allows QoS 0 only",)), ("retain", "retain_available false", ("retains nothing",)),
        ("packet", "max_packet_size 2000", ("at most 2000 bytes",))):
    badged.told = []
    port = free_port()
    broker = Broker(name, port, f"allow_anonymous true\n{lines}")
    consumer = Consumer(name, port)
    host = Host(name, port, sock)
    check(f"a broker with {lines}: the host is online, and taps arrive", online(consumer, host) and tap_arrives(consumer, badged),
          host.log())
    check("the limit is in the log and in --status", until(lambda: all(
        word in text for word in words for text in (host.log(), host.run("--status").stdout))), (host.log(), host.run("--status")))
    told = consumer.last("state")["broker"]
    check("and in state", {"qos": told["maximumQoS"] == 0, "retain": told["retainAvailable"] is False,
                           "packet": told["maximumPacketSize"] == 2000}[name], told)
    host.end(signal.SIGTERM)
    check("and the farewell arrives", until(lambda: consumer.last("state").get("reason") == "stopped"), consumer.last("state"))
    broker.end()
port = free_port()
broker = Broker("keepalive", port, "allow_anonymous true\nmax_keepalive 10")
consumer = Consumer("keepalive", port, "-k", "10")
link = Link(port)
host = Host("keepalive", link.port, sock)
check("a broker with max_keepalive 10: the host is online", online(consumer, host), host.log())
session = consumer.last("state")["session"]
check("and pings within 10 s", until(lambda: link.heard.endswith(b"\xc0\x00")), link.heard[-20:])
check("without a new connection", link.connections == 1 and consumer.last("state")["session"] == session, host.log())
check("which state says", consumer.last("state")["broker"]["keepAlive"] == 10, consumer.last("state"))
host.end(signal.SIGTERM)
broker.end()

# MARK: Hostile brokers
accepted = bytes.fromhex("2003000000")
unknown = bytes.fromhex("027f00")
for name, answers, words in (
        ("connack", (bytes.fromhex("20050000") + unknown,), "property 7f"),
        ("puback", (accepted, bytes.fromhex("4006000100") + unknown), "property 7f"),
        ("disconnect", (accepted, bytes.fromhex("e00400") + unknown), "property 7f"),
        ("auth", (accepted, bytes.fromhex("f00418") + unknown), "way to log in"),
        ("pubrec", (accepted, bytes.fromhex("5006000100") + unknown), "kind 50"),
        ("publish", (accepted, bytes.fromhex("3080808060") + bytes(1 << 20)), "nobody has asked for"),
        ("flood", (accepted, bytes.fromhex("d000") * 100_000), "ping that was not sent"),
        ("taken", (accepted, bytes.fromhex("e0028e00")), "two hosts have one name")):
    raw = RawBroker(*answers)
    hostile = Host("hostile-" + name, raw.port, sock)
    check(f"a hostile broker ({name}): the reason is told, and attempts go on", until(
        lambda: raw.connections >= 2 and words in hostile.log() and words in hostile.run("--status").stdout), hostile.log())
    check("the program goes on in the same memory", hostile.process.poll() is None and hostile.memory() < 16_000, hostile.memory())
    hostile.end(signal.SIGTERM)

# MARK: A badged that cannot be read
for name, line in (("text", b"hello\n"), ("array", b"[1]\n"), ("long", b"x" * (2 << 20) + b"\n"), ("cut", b'{"msg":"REA\n')):
    garbled = os.path.join(work, f"garbled-{name}.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(garbled)
        listener.listen()
        host = Host("garbled-" + name, 1, garbled)
        client, _ = listener.accept()
        try:
            client.sendall(line)
        except OSError:
            pass
        check(f"a message that cannot be read ({name}) is told as such", until(
            lambda: "does not speak badged's protocol" in host.log()) and "has closed the connection" not in host.log(), host.log())
        client.close()
        host.end()

# MARK: The queue file
badged.told = []
port = free_port()
# The sessions of the consumers outlive the broker, so nothing is missed while it starts.
broker = Broker("queue", port, "allow_anonymous true", persistence=True)
consumer = Consumer("queue", port)
host = Host("queue", port, sock)
online(consumer, host)
tap_arrives(consumer, badged)
broker.end(signal.SIGTERM)


def files():
    return [name for name in os.listdir(host.folder) if name.startswith("queue.db") and "damaged" not in name]


def stored():
    """The last number that the queue has given to a tap; 0 before the first."""
    try:
        with open(os.path.join(host.folder, "queue.numbers"), encoding="ascii") as file:
            return int(file.read().split()[1])
    except FileNotFoundError:
        return 0


def restart():
    """Starts badged-mqtt again, and waits until it watches."""
    count = host.log().count("connected to badged")
    host.start()
    check("badged-mqtt starts again", until(lambda: host.log().count("connected to badged") > count and badged.watchers), host.log())


def damage(how):
    """Damages the queue while events wait in it, and starts badged-mqtt again."""
    wanted = stored() + 50
    until(lambda: badged.tap() and stored() >= wanted)
    host.end()
    how()
    restart()


def shred():
    for name in files():
        with open(os.path.join(host.folder, name), "r+b") as file:
            size = os.path.getsize(file.name)
            for number in range(10):
                file.seek(random.randrange(max(size, 1)))
                file.write(os.urandom(64))


def truncate():
    for name in files():
        os.truncate(os.path.join(host.folder, name), 4096)


def empty():
    for name in files():
        os.truncate(os.path.join(host.folder, name), 0)


def remove():
    for name in files():
        os.remove(os.path.join(host.folder, name))


def remove_log():
    for name in files():
        if name != "queue.db":
            os.remove(os.path.join(host.folder, name))


def restore():
    for name in files():
        os.remove(os.path.join(host.folder, name))
    for name in os.listdir(copy):
        shutil.copy(os.path.join(copy, name), host.folder)


copy = os.path.join(work, "copy")
os.makedirs(copy)
host.end()
for name in files():
    shutil.copy(os.path.join(host.folder, name), copy)
restart()
for how in (shred, shred, truncate, empty, remove, remove_log, restore):
    damage(how)
broker.start()
check("a queue damaged in seven ways: taps arrive", tap_arrives(consumer, badged), host.log()[-500:])
seen = {}
faults = []
for event in consumer.events():
    place = (event["epoch"], event["sequence"])
    if seen.setdefault(place, event) != event:
        faults.append(place)
check("no number has two contents", not faults, faults)
gaps = [gap["reason"] for event in consumer.events() for gap in event.get("gap", [])]
check("the loss is told", "storeLost" in gaps, (gaps, host.log()[-800:]))
host.end(signal.SIGTERM)

# MARK: A full disk
disk = os.path.join(work, "disk")
os.makedirs(disk, exist_ok=True)
badged.told = []
if os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k,mode=700", "tmpfs", disk]).returncode == 0:
    try:
        host = Host("full", port, sock, folder=disk)
        consumer = Consumer("full", port)
        online(consumer, host)
        tap_arrives(consumer, badged)
        broker.end(signal.SIGTERM)
        for number in range(50):
            until(badged.tap)
        until(lambda: stored() == len(badged.told))
        filler = os.open(os.path.join(disk, "filler"), os.O_WRONLY | os.O_CREAT)
        try:
            while os.write(filler, bytes(512)):
                pass
        except OSError:
            pass
        os.close(filler)
        for number in range(400):
            badged.tap()
        check("disk full: it is told", until(lambda: "cannot store" in host.log()), host.log()[-500:])
        told = host.run("--status").stdout
        check("--status does not ask for a restart, which would lose what is known of lost events", "the disk is full" in told and
              "badged:   not known" in told and "systemctl restart" not in told, told)
        broker.start()
        check("the host is online, and says that events are not durable", online(consumer, host) and until(
            lambda: consumer.last("state").get("queue", {}).get("durable") is False), consumer.last("state"))
        check("what the disk had arrives", until(lambda: len(consumer.events()) > 50), len(consumer.events()))
        before, lines = host.processor_time(), host.log().count("\n")
        time.sleep(3)
        check("it waits without work and without new lines in the log", host.processor_time() - before < 0.5 and
              host.log().count("\n") - lines < 5, (host.processor_time() - before, host.log()[-300:]))
        os.remove(os.path.join(disk, "filler"))
        check("with room, taps arrive", tap_arrives(consumer, badged), host.log()[-500:])
        gaps = [g for e in consumer.events() for g in e.get("gap", []) if g["reason"] == "diskFull"]
        check("what the disk did not take is told", gaps and sum(g["missed"] for g in gaps) > 0, gaps)
        check("and events are durable again", until(lambda: consumer.last("state").get("queue", {}).get("durable") is True),
              consumer.last("state"))
        host.end(signal.SIGTERM)
    finally:
        subprocess.run(["umount", "-l", disk])
else:
    print("  not run: a full disk (needs root, and a mount of tmpfs)", flush=True)

# MARK: A full queue
badged.told = []
broker.end(signal.SIGTERM)
# Other hosts watch, too. What this one is not told at first, it cannot miss.
others = list(badged.watchers)
host = Host("many", port, sock, more="limit = 100")
until(lambda: any(client not in others for client in badged.watchers))
for number in range(1000):
    badged.tap()
check("a full queue: each tap was stored", until(lambda: stored() == 1000), stored())
host.end()
broker.start()
consumer = Consumer("many", port, "-R")
restart()
check("after a restart the newest tap arrives", tap_arrives(consumer, badged), host.log())
judge("full queue", [badged], consumer)
host.end(signal.SIGTERM)
broker.end()

# MARK: The slow ones
check("a broker that says nothing is given up, and tried again", until(lambda: quiet_link.connections >= 2), quiet.log())
check("without work", quiet.processor_time() < 2, quiet.processor_time())
quiet_link.is_silent = False
check("when it speaks, the host is online", online(quiet_consumer, quiet), quiet.log())
quiet.end(signal.SIGTERM)
quiet_broker.end()
ghost_broker.start()
time.sleep(max(0, ghost_began + 26 - time.monotonic()))
late = Consumer("late", ghost_port, "-W", "2")
late.process.wait()
check("host and broker died together: no ghost is online", not late.messages("state"), late.messages("state"))
ghost_broker.end()
finish()

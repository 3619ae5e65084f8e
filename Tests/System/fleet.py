# SPDX-License-Identifier: GPL-3.0-or-later
"""The sample log_events.py with faults. Started by fleet.sh with the folder of the programs, a folder for files, and the sample."""

import json
import os
import signal
import sqlite3
import subprocess
import sys

import brokers
from brokers import Broker, FakeBadged, Host
from harness import check, children, finish, free_port, until

binaries, work, sample = sys.argv[1:]
brokers.use(binaries, work)
path = os.path.join(work, "fleet.db")


def query(statement):
    """The rows; none as long as there is no database."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        try:
            return database.execute(statement).fetchall()
        except sqlite3.OperationalError:
            return []


def ids():
    return [json.loads(content).get("id") for content, in query("SELECT content FROM events ORDER BY epoch, sequence")]


def holes():
    return query("SELECT first, last, reason FROM holes")


def arrives():
    return until(lambda: badged.told[-1][2] in ids())


def start():
    with open(os.path.join(work, "sample.log"), "ab") as log:
        process = subprocess.Popen([sys.executable, sample, path, f"mqtt://localhost:{port}"], stderr=log)
    children.append(process)
    return process


def log():
    with open(os.path.join(work, "sample.log"), encoding="utf-8") as file:
        return file.read()


def online():
    return until(lambda: query("SELECT online FROM hosts WHERE host = 'door'") == [(1,)] and badged.watchers)


port = free_port()
badged = FakeBadged(os.path.join(work, "badged.sock"))
broker = Broker("fleet", port, "allow_anonymous true", persistence=True)
consumer = start()
until(lambda: ": log 1 badged/1/+/+" in broker.log())
host = Host("door", port, badged.path, more="keep = 1")
check("the host is online", online(), log())
for turn in range(5):
    until(badged.tap)
check("taps arrive", arrives(), log())
times = query("SELECT abs(time - received) < 60000 FROM log")
check("with their times", times == [(1,)] * 5, times)
documents = dict(query("SELECT kind, content FROM documents"))
check("documents are stored", until(lambda: {"state", "health", "readers"} <= {kind for kind, in query("SELECT kind FROM documents")}))
check("the view of the readers has their names and cards", until(
    lambda: query("SELECT name, card FROM readers") == [("Desk", "eid")]), query("SELECT * FROM readers"))
# A later badged-mqtt has members that the sample does not know.
later = {"session": "s", "readers": [{"name": "Door", "driver": "pcsc", "card": None, "later": [1]}]}
state = {"state": "online", "session": "s", "version": "9", "settings": {"badged": "aa"}, "packages": {"pcscd": "2.3"}, "later": 1}
for kind, content in (("readers", later), ("state", state)):
    subprocess.run(["mosquitto_pub", "-p", str(port), "-q", "1", "-t", f"badged/1/later/{kind}", "-m", json.dumps(content)], check=True)
until(lambda: query("SELECT 1 FROM readers WHERE host = 'later'"))
check("drivers, versions, packages and hashes of settings are stored, and members that are new", query(
    "SELECT driver, json_extract(readers.content, '$.later[0]'), version, json_extract(settings, '$.badged'), "
    "json_extract(packages, '$.pcscd'), json_extract(hosts.content, '$.later') FROM readers JOIN hosts USING (host) "
    "WHERE host = 'later'") == [("pcsc", 1, "9", "aa", "2.3", 1)], query("SELECT * FROM hosts"))

# MARK: The consumer is killed
for turn in range(10):
    for number in range(5):
        badged.tap()
    consumer.kill()
    consumer.wait()
    badged.tap()
    consumer = start()
until(badged.tap)
check("the consumer is killed ten times: the last tap arrives", arrives(), log())
told = [entry[2] for entry in badged.told]
check("all taps are stored once, in their order, without a hole", ids() == told and not holes(), (len(ids()), len(told), holes()))

# MARK: Host and broker are killed
for turn in range(3):
    for number in range(5):
        badged.tap()
    host.end()
    broker.end()
    broker.start()
    host.start()
    online()
until(badged.tap)
check("host and broker are killed: the last tap arrives", arrives(), log())
losses = query("SELECT reason, missed FROM losses")
lost = len(badged.told) - len(ids())
check("each tap that was lost is known", lost == sum(missed or 0 for _, missed in losses) + sum(
    last - first + 1 for first, last, _ in holes()), (lost, losses, holes()))
check("none is stored twice", len(set(ids())) == len(ids()))

# MARK: The broker loses what it has acknowledged
consumer.send_signal(signal.SIGTERM)
consumer.wait()
watcher = brokers.Consumer("watcher", port)
before = len(holes())
for number in range(10):
    until(badged.tap)
until(lambda: badged.told[-1][2] in [event["id"] for event in watcher.events()])
until(lambda: watcher.last("state")["queue"]["waiting"] == 0 and
      watcher.last("state")["streams"]["credential"]["last"] == watcher.events()[-1]["sequence"])
broker.end()
os.remove(os.path.join(broker.folder, "mosquitto.db"))
broker.start()
consumer = start()
check("a broker that has lost ten taps: they are a hole without a reason", until(lambda: [
    last - first + 1 for first, last, reason in holes() if reason is None] == [10]), (holes(), log()))
first = next(first for first, _, reason in holes() if reason is None)
kept = until(lambda: (text := host.run("--events", str(first)).stdout).count("\n") == 10 and text)
consumer.send_signal(signal.SIGTERM)
consumer.wait()
subprocess.run([sys.executable, sample, path, "-"], input=kept, text=True, check=True)
check("badged-mqtt --events fills the hole", len(holes()) == before and badged.told[-1][2] in ids(), holes())

# MARK: The end of the host
consumer = start()
check("the host is online again", online())
host.end(signal.SIGTERM)
check("it stops: the database says why", until(lambda: query("SELECT online, reason FROM hosts WHERE host = 'door'") == [(0, "stopped")]),
      query("SELECT * FROM presence"))
check("its documents count no longer", query("SELECT * FROM documents WHERE host = 'door'") == [])
check("a message that is no JSON is noted, and nothing else changes", subprocess.run(
    ["mosquitto_pub", "-p", str(port), "-q", "1", "-t", "badged/1/door/credential", "-m", "hello"], check=True) and until(
        lambda: query("SELECT host, topic FROM faults") == [("door", "badged/1/door/credential")]) and consumer.poll() is None, log())
consumer.send_signal(signal.SIGTERM)
consumer.wait()
finish()

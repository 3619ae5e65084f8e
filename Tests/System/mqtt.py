# SPDX-License-Identifier: GPL-3.0-or-later
"""badged-mqtt between a badged in software, which taps as fast as a test wants, and a real mosquitto with its clients.

Started by mqtt.sh with the folder of the programs, a folder for files, and the number of kills.
"""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import brokers
from brokers import Broker, Consumer, FakeBadged, Host, arrives, judge, online, paho_client, pseudonym, received, retained_messages
from harness import Client, Daemon, check, finish, free_port, until

binaries, work, kills = sys.argv[1], sys.argv[2], int(sys.argv[3])
brokers.use(binaries, work)


sock = os.path.join(work, "badged.sock")
port = free_port()

# MARK: The normal course
badged = FakeBadged(sock)
broker = Broker("plain", port, "allow_anonymous true")
consumer = Consumer("watcher", port)
host = Host("door", port, sock, more="[homeassistant]\nenabled = yes")
check("state is online, and taps are watched", online(consumer, host), host.log())
first = [m["topic"] for m in consumer.messages()]
check("state is the first message", first[0] == "badged/1/door/state", first[:3])
until(lambda: consumer.last("readers").get("readers") and consumer.messages("health"))
readers = consumer.last("readers")
check("readers have no counter of a card", readers["readers"] == [
    {"name": "Desk", "keypad": False, "busy": False, "driver": "pcsc", "card": {"kind": "eid"}}], readers)
for number in range(300):
    badged.tap()
    time.sleep(0.01)
check("300 taps at 100 a second arrive", received(consumer, 300), len(consumer.events()))
judge("normal course", [badged], consumer)
known = {"epoch", "sequence", "time", "uptime", "boot", "reader", "protocol", "verified", "id", "certificate", "listed", "phase", "gap"}
check("an event has no key and no number of the card", all(set(event) <= known for event in consumer.events()), consumer.events()[-1])
retained = retained_messages(port)
kinds = {message.topic for message in retained}
check("documents are retained, events are not", "badged/1/door/state" in kinds and "badged/1/door/readers" in kinds and
      not any("credential" in kind for kind in kinds), kinds)
check("retained documents expire", all(message.properties.MessageExpiryInterval <= 750 for message in retained), kinds)
until(lambda: any("homeassistant" in m["topic"] for m in consumer.messages()))
discovery = [m["payload"] for m in consumer.messages("config")][-1]
parts = {name: part for name, part in discovery["components"].items() if "unique_id" in part}
check("the discovery of Home Assistant has a device, an origin and components with platform and unique_id",
      discovery["device"]["identifiers"] and discovery["origin"]["name"] == "badged-mqtt" and
      {"connectivity", "problem", "queue", "reader_1", "credential", "opening"} <= set(parts) and
      all(part["platform"] in ("binary_sensor", "sensor", "event") and part["unique_id"] for part in parts.values()) and
      len({part["unique_id"] for part in parts.values()}) == len(parts), discovery)
check("badged-mqtt sends only GET_, START_ and STOP_ commands",
      all(name.startswith(("GET_", "START_", "STOP_")) for name in badged.commands), badged.commands)
status = host.run("--status")
check("--status says that the broker is connected", status.returncode == 0 and "connected" in status.stdout, status)
x = hashlib.sha256(b"1").digest()
text = host.run("--pseudonym", text=x.hex() + "\n").stdout
check("--pseudonym gives the id of the events", text == f"id:{pseudonym(x)}\n" and consumer.events()[0]["id"] == pseudonym(x), text)
pages = int(open(f"/proc/{host.process.pid}/statm", encoding="ascii").read().split()[1])
print(f"  memory: {pages * 4} KiB resident")

# MARK: paho
heard = []
paho = paho_client("paho", port, heard)
badged.tap()
check("paho-mqtt gets documents, and the tap with its pseudonym", until(lambda: any(
    message.topic.endswith("/credential") and json.loads(message.payload)["id"] == badged.told[-1][2] for message in list(heard))) and
      {"badged/1/door/state", "badged/1/door/readers", "badged/1/door/health"} <= {message.topic for message in heard},
      [message.topic for message in heard])
check("and stays connected", paho.is_connected())
paho.disconnect()
paho.loop_stop()

# MARK: New settings
before = consumer.last("state")["session"]
host.edit("[publish]", "[publish]\nheartbeat = 5")
host.process.send_signal(signal.SIGHUP)
check("wrong settings are refused, and health says so", until(lambda: any(
    c["name"] == "mqtt configuration" and "heartbeat" in c["cause"] for c in consumer.last("health").get("checks", []))),
      host.log())
check("nothing else has changed", consumer.last("state")["session"] == before)
host.edit("heartbeat = 5", "heartbeat = 50")
host.edit("[queue]", "[queue]\nkeep = 1")
host.process.send_signal(signal.SIGHUP)
check("right settings count after an offline with the reason restarting", until(
    lambda: consumer.last("state").get("heartbeat") == 50) and "restarting" in [
        m["payload"].get("reason") for m in consumer.messages("state") if m["payload"]], host.log())
check("health is right again", until(lambda: "mqtt configuration" not in json.dumps(consumer.last("health"))))
badged.tap()
arrives(consumer, badged)
last = consumer.events()[-1]
until(lambda: host.run("--events", str(last["sequence"])).stdout)
kept = host.run("--events", str(last["sequence"])).stdout
check("--events prints what the broker had", kept.startswith("badged/1/door/credential {") and
      json.loads(kept.split(" ", 1)[1]) == last, kept)

# MARK: A program that hangs
os.kill(host.process.pid, signal.SIGSTOP)
stopped = host.run("--status")
check("--status says that a stopped program does not answer", stopped.returncode == 1 and "does not answer" in stopped.stdout and
      "broker:   " in stopped.stdout and "badged:   not known" in stopped.stdout, stopped)
os.kill(host.process.pid, signal.SIGCONT)
check("--status says that it is connected again", until(lambda: host.run("--status").returncode == 0), host.run("--status"))

# MARK: The end, and the will
session = consumer.last("state")["session"]
code = host.end(signal.SIGTERM)
until(lambda: consumer.last("state")["state"] == "offline")
state = consumer.last("state")
check("SIGTERM: offline, stopped, with the session, and no will after it", code == 0 and state["reason"] == "stopped" and
      state["session"] == session, state)
host.start()
online(consumer, host)
session = consumer.last("state")["session"]
host.end()
until(lambda: consumer.last("state")["state"] == "offline")
state = consumer.last("state")
code = host.run("--status")
check("--status says that the program does not run", code.returncode == 1 and "does not run" in code.stdout and
      "not connected" in code.stdout, code)
check("kill -9: the will has the session", state["reason"] == "connectionLost" and state["session"] == session, state)
host.start()
online(consumer, host)
check("a client watches", until(badged.tap))
received(consumer, 303)
gaps = consumer.events()[-1].get("gap", [])
check("the next tap tells that nobody watched", [gap["reason"] for gap in gaps] == ["notWatching"] and gaps[0]["since"] > 0, gaps)

# MARK: Kills of badged-mqtt
stop = threading.Event()


def taps():
    while not stop.is_set():
        badged.tap()
        time.sleep(0.004)


thread = threading.Thread(target=taps)
thread.start()
for number in range(kills):
    time.sleep(random.uniform(0.0, 0.4))
    host.end()
    host.start()
stop.set()
thread.join()
online(consumer, host)
check("a client watches", until(badged.tap))
wanted = badged.told[-1][2]
check("after the kills the last tap arrives", until(lambda: any(e["id"] == wanted for e in consumer.events())), host.log()[-500:])
judge(f"{kills} kills of badged-mqtt", [badged], consumer)

# MARK: The broker away
broker.end()
for number in range(500):
    badged.tap()
consumer.process.kill()
with host.frozen():
    broker.start()
    consumer = Consumer("watcher2", port)
check("a client watches", until(badged.tap))
wanted = badged.told[-1][2]
check("broker killed, without persistence: what waited arrives", until(lambda: any(e["id"] == wanted for e in consumer.events())))
events = consumer.events()
numbers = sorted({e["sequence"] for e in events})
check("in order, without a hole", len(numbers) >= 501 and
      numbers == list(range(numbers[0], numbers[0] + len(numbers))), (len(numbers), numbers[:1]))
broker.process.send_signal(signal.SIGSTOP)
for number in range(100):
    badged.tap()
time.sleep(1)
broker.process.send_signal(signal.SIGCONT)
wanted = badged.told[-1][2]
check("broker stopped for a second: all arrive", until(lambda: any(e["id"] == wanted for e in consumer.events())))

# MARK: badged away
badged.stop()
check("badged away: state says so, and readers are emptied",
      until(lambda: consumer.last("state").get("badged") is False and consumer.last("readers").get("readers") == []),
      consumer.last("state"))
check("and --status, too", until(lambda: "badged:   not connected" in host.run("--status").stdout), host.run("--status"))
badged = FakeBadged(sock, denied=("START_OPENINGS",))
badged.number = 100_000
online(consumer, host)
check("a permission that is missing is a check of health", until(lambda: any(
    c["name"] == "mqtt START_OPENINGS" and not c["ok"] for c in consumer.last("health").get("checks", []))), consumer.last("health"))
check("a client watches", until(badged.tap))
wanted = badged.told[-1][2]
until(lambda: any(e["id"] == wanted for e in consumer.events()))
gaps = consumer.events()[-1].get("gap", [])
check("the next tap has the gap daemonAway", [gap["reason"] for gap in gaps] == ["daemonAway"], gaps)

# MARK: The queue
epoch = consumer.events()[-1]["epoch"]
host.end(signal.SIGTERM)
# The log hides what is damaged in the file.
for name in ("queue.db", "queue.db-wal"):
    with open(os.path.join(host.folder, name), "r+b") as file:
        file.seek(100)
        file.write(os.urandom(4000))
host.start()
until(lambda: "moved aside" in host.log())
online(consumer, host)
check("a client watches", until(badged.tap))
wanted = badged.told[-1][2]
check("a damaged queue is moved aside", until(lambda: any(e["id"] == wanted for e in consumer.events())), host.log()[-500:])
event = consumer.events()[-1]
check("there is a new epoch, and the gap storeLost", event["epoch"] != epoch and event["sequence"] == 1 and
      "storeLost" in [gap["reason"] for gap in event.get("gap", [])], event)
host.end(signal.SIGTERM)
broker.end(signal.SIGTERM)

small = Host("small", port, sock, more="limit = 100")
until(lambda: badged.watchers)
for number in range(350):
    badged.tap()
until(lambda: small.status()["waiting"] == 100)
told = small.run("--status").stdout
check("--status counts what waits and what is lost, and says why", "100 events, 250 lost" in told and "the queue is full" in told, told)
check("the log says that an event is lost", "1 event is lost; credential: the queue is full" in small.log(), small.log())
with small.frozen():
    broker.start()
    consumer = Consumer("watcher3", port)
wanted = badged.told[-1][2]
check("a full queue keeps the newest", until(lambda: any(e["id"] == wanted for e in consumer.events())), small.log()[-300:])
numbers = [e["sequence"] for e in consumer.events()]
gaps = [gap for e in consumer.events() for gap in e.get("gap", [])]
check("100 events are left, and each hole is told with its numbers", numbers == list(range(251, 351)) and
      all(gap["reason"] == "queueFull" for gap in gaps) and {gap["to"] for gap in gaps} >= {250}, (numbers[:2], len(numbers), gaps[:2]))
check("state counts what is lost", until(lambda: consumer.last("state").get("streams", {}).get("credential", {}).get("lost") == 250),
      consumer.last("state"))
small.end(signal.SIGTERM)

broker.end(signal.SIGTERM)
port = free_port()

# MARK: A real badged
broker = Broker("real", port, "allow_anonymous true")
consumer = Consumer("watcher9", port)
real = os.path.join(work, "real.sock")
arguments = ["--virtual", "--no-pcsc", "--no-nfc", "--no-ble", "--socket", real]


def real_tap(client, watcher):
    """Holds a virtual card with PKOC to the virtual reader; returns the public key that badged tells."""
    client.ask("CHANGE_PIN", cmd="RUN_CHANGE_PIN")
    client.wait_for("INSERT_CARD")
    client.send(cmd="SET_CARD", name="Simulator", card={"kind": "pkoc"})
    key = watcher.wait_for("CREDENTIAL")["publicKey"]
    client.send(cmd="CANCEL")
    client.wait_for("CHANGE_PIN")
    return key


def real_clients():
    client, watcher = Client(real), Client(real)
    watcher.ask("CREDENTIALS", cmd="START_CREDENTIALS")
    return client, watcher


daemon = Daemon(f"{binaries}/badged", arguments, work)
whole = Host("whole", port, real)
check("a real badged: taps are watched", online(consumer, whole), whole.log())
client, watcher = real_clients()
keys = [real_tap(client, watcher) for number in range(3)]
check("its taps arrive, with the pseudonym of their key", received(consumer, 3) and
      [e["id"] for e in consumer.events()] == [pseudonym(bytes.fromhex(key)[1:33]) for key in keys], consumer.events())
check("its health and readers arrive", until(lambda: "Simulator" in json.dumps(consumer.last("readers")) and
                                             "badged" in json.dumps(consumer.last("health"))))
whole.end()
keys.append(real_tap(client, watcher))
whole.start()
online(consumer, whole)
keys.append(real_tap(client, watcher))
check("a tap that another client saw while badged-mqtt was killed is told as missed", until(lambda: [
    gap.get("missed") for gap in consumer.events()[-1].get("gap", []) if "missed" in gap] == [1]), consumer.events()[-1])
daemon.end()
check("badged ends: state says so", until(lambda: consumer.last("state").get("badged") is False))
daemon = Daemon(f"{binaries}/badged", arguments, work)
online(consumer, whole)
client, watcher = real_clients()
real_tap(client, watcher)
check("after its restart the next tap has the gap daemonAway and misses nothing", until(lambda: [
    (gap["reason"], gap.get("missed")) for gap in consumer.events()[-1].get("gap", [])] == [("daemonAway", None)]),
      consumer.events()[-1])
whole.end(signal.SIGTERM)
daemon.end()
broker.end()

# MARK: A broker that refuses
password, acl = os.path.join(work, "passwords"), os.path.join(work, "acl")
subprocess.run(["mosquitto_passwd", "-b", "-c", password, "strict", "right"], check=True)
subprocess.run(["mosquitto_passwd", "-b", password, "watcher", "right"], check=True)
with open(acl, "w", encoding="utf-8") as file:
    file.write("user watcher\ntopic readwrite #\nuser strict\ntopic write badged/1/strict/state\n")
for path in (password, acl):
    os.chmod(path, 0o600)
port = free_port()
broker = Broker("strict", port, f"allow_anonymous false\npassword_file {password}\nacl_file {acl}")
consumer = Consumer("watcher5", port, "-u", "watcher", "-P", "right")
secret = os.path.join(work, "password")
with open(secret, "w", encoding="utf-8") as file:
    file.write("wrong\n")
os.chmod(secret, 0o600)
strict = Host("strict", port, sock, broker=f"user = strict\npassword_file = {secret}")
check("a wrong password is told once in the log, and the program goes on", until(lambda: "refuses the connection" in strict.log()), strict.log())
time.sleep(2)
check("it is told once", strict.log().count("refuses the connection") == 1, strict.log())
with open(secret, "w", encoding="utf-8") as file:
    file.write("right\n")
check("with the right password it recovers by itself", online(consumer, strict), strict.log())
check("a client watches", until(badged.tap))
check("what the ACL refuses is held and told", until(lambda: "refuses events of credential" in strict.log()), strict.log())
with open(acl, "a", encoding="utf-8") as file:
    file.write("topic write badged/1/strict/#\n")
broker.process.send_signal(signal.SIGHUP)
wanted = badged.told[-1][2]
check("with the right ACL the event arrives", until(lambda: any(e["id"] == wanted for e in consumer.events())), strict.log())

# MARK: New settings that do not connect
session = consumer.last("state")["session"]
with open(secret, "w", encoding="utf-8") as file:
    file.write("wrong\n")
strict.process.send_signal(signal.SIGHUP)
check("new settings that the broker refuses: health and --status say so", until(lambda: any(
    c["name"] == "mqtt configuration" and "do not connect" in c["cause"] for c in consumer.last("health").get("checks", []))) and
      "the new ones do not connect" in strict.run("--status").stdout, strict.log())
check("the old connection stays, and taps arrive", arrives(consumer, badged) if badged.tap() else False, strict.log())
check("no document of it went away", consumer.last("state")["session"] == session and
      consumer.last("state")["state"] == "online", consumer.last("state"))
with open(secret, "w", encoding="utf-8") as file:
    file.write("right\n")
strict.process.send_signal(signal.SIGHUP)
check("right ones connect, and health is right again", until(
    lambda: consumer.last("state")["session"] != session and consumer.last("state")["state"] == "online" and
    "mqtt configuration" not in json.dumps(consumer.last("health"))), strict.log())
folder = os.path.join(work, "run")
os.makedirs(folder, exist_ok=True)
strict.end(signal.SIGTERM)
strict.environment["RUNTIME_DIRECTORY"] = folder
strict.start()
online(consumer, strict)
badgectl = [f"{binaries}/badgectl", "metrics", "--socket", sock, "--mqtt", os.path.join(folder, "metrics.json")]
check("badgectl metrics has those of badged-mqtt", until(lambda: all(
    line in subprocess.run(badgectl, capture_output=True, text=True, check=True).stdout for line in (
        "\nbadged_mqtt_connected 1\n", '\nbadged_mqtt_waiting_events{stream="credential"} 0\n',
        '\nbadged_mqtt_lost_events_total{stream="opening"} 0\n', "\nbadged_mqtt_durable 1\n"))),
      subprocess.run(badgectl, capture_output=True, text=True))
strict.end(signal.SIGTERM)
broker.end(signal.SIGTERM)

# MARK: Certificates
pki = os.path.join(work, "pki")
os.makedirs(pki, exist_ok=True)


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=pki)


def certificate(name, ca, days, host_name="localhost"):
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key", "-out",
            f"{name}.csr", "-subj", f"/CN={host_name}", "-addext", f"subjectAltName=DNS:{host_name}")
    with open(os.path.join(pki, "ext"), "w", encoding="ascii") as file:
        file.write(f"subjectAltName=DNS:{host_name}\n")
    dates = ["-days", str(days)] if days > 0 else ["-not_before", "20200101000000Z", "-not_after", "20210101000000Z"]
    if days > 0:
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-CAcreateserial", *dates,
                "-extfile", "ext", "-out", f"{name}.pem")
    else:
        open(os.path.join(pki, "index"), "w", encoding="ascii").close()
        with open(os.path.join(pki, "ca.conf"), "w", encoding="ascii") as file:
            file.write("[ca]\ndefault_ca=c\n[c]\ndatabase=index\nnew_certs_dir=.\nrand_serial=yes\npolicy=p\ndefault_md=sha256\n"
                       "[p]\ncommonName=supplied\n")
        openssl("ca", "-batch", "-config", "ca.conf", "-cert", f"{ca}.pem", "-keyfile", f"{ca}.key", "-in", f"{name}.csr",
                "-out", f"{name}.pem", "-startdate", "20200101000000Z", "-enddate", "20210101000000Z", "-extfile", "ext")


for name in ("ca", "other"):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key", "-out",
            f"{name}.pem", "-subj", f"/CN={name}", "-days", "10")
certificate("server", "ca", 10)
certificate("client", "ca", 10, "secure")
certificate("old", "ca", 0)
certificate("foreign", "ca", 10, "elsewhere.example")
certificate("untrusted", "other", 10)
port, plain = free_port(), free_port()


def serve(name):
    for suffix in ("key", "pem"):
        shutil.copy(f"{pki}/{name}.{suffix}", f"{pki}/used.{suffix}")
    return Broker("tls", port, f"cafile {pki}/ca.pem\ncertfile {pki}/used.pem\nkeyfile {pki}/used.key\nrequire_certificate true\n"
                  f"use_identity_as_username true\nlistener {plain} 127.0.0.1\nallow_anonymous true")


broker = serve("old")
consumer = Consumer("watcher6", plain)
secure = Host("secure", port, sock, scheme="mqtts",
              broker=f"ca = {pki}/ca.pem\ncertificate = {pki}/client.pem\nkey = {pki}/client.key")
for name, sentence, words in (("old", "expired", "has expired"), ("foreign", "for another name", "another name than localhost"),
                              ("untrusted", "of another authority", "by no authority in")):
    if name != "old":
        broker.end()
        broker = serve(name)
    before = len(secure.log())
    check(f"a certificate that is {sentence}: the cause is told", until(
        lambda: words in secure.log()[before if name != "old" else 0:] and words in secure.run("--status").stdout), secure.log())
    check("no message arrives", not secure.status()["connected"] and
          not any("secure" in m["topic"] for m in consumer.messages()), secure.status())
broker.end()
broker = serve("server")
consumer.process.kill()
consumer = Consumer("watcher7", plain)
check("with the right certificate it recovers by itself", online(consumer, secure), secure.log())
check("a client watches", until(badged.tap))
wanted = badged.told[-1][2]
check("taps arrive over TLS", until(lambda: any(e["id"] == wanted for e in consumer.events())), (secure.log(), secure.status()))
certificate("stranger", "other", 10, "secure")
for name, scheme, to, files, words in (
        ("nobody", "mqtts", port, "", "certificate"),
        ("stranger", "mqtts", port, f"certificate = {pki}/stranger.pem\nkey = {pki}/stranger.key", "refuses the certificate of this host"),
        ("plainport", "mqtts", plain, "", "not speak TLS at this port"),
        ("tlsport", "mqtt", port, "", "no connection to the broker")):
    host = Host(name, to, sock, scheme=scheme, broker=(f"ca = {pki}/ca.pem\n" if scheme == "mqtts" else "") + files)
    check(f"a fault of TLS ({name}): the cause is told", until(
        lambda: "no connection to the broker: " in host.log() and words in host.log()), host.log())
    host.end()
check("--forget is refused while the program runs", secure.run("--forget").returncode == 1 and
      "badged-mqtt runs" in secure.run("--forget").stderr)
secure.end(signal.SIGTERM)
removed = secure.run("--forget")
check("--forget removes the documents", removed.returncode == 0 and "4 messages are removed" in removed.stdout, removed)
kept = [message.topic for message in retained_messages(plain)]
check("nothing is left of the host", not any("secure" in topic for topic in kept), kept)
old = Host("oldversion", plain, sock, broker="version = 3.1.1")
check("MQTT 3.1.1", online(consumer, old), old.log())
check("a client watches", until(badged.tap))
wanted = badged.told[-1][2]
check("taps arrive with MQTT 3.1.1", until(lambda: any(e["id"] == wanted for e in consumer.events())))
old.end(signal.SIGTERM)
broker.end()

# MARK: docs/fleet.md as written
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/fleet.md"), encoding="utf-8") as file:
    page = file.read()
example, acl_lines = (
    "\n".join(line.strip() for line in block.split("```")[0].splitlines()) for block in page.split("```text\n")[1:3])
acl = os.path.join(pki, "acl")
with open(acl, "w", encoding="utf-8") as file:
    file.write(acl_lines + "\n")
os.chmod(acl, 0o600)
certificate("log", "ca", 10, "log")
port = free_port()
example = example.replace("/etc/mosquitto", pki).replace(
    "listener 8883", f"listener {port}").replace("/var/lib/mosquitto/", work + "/kept/")
os.makedirs(os.path.join(work, "kept"), exist_ok=True)
broker = Broker("page", free_port(), "allow_anonymous false\n" + example)
broker_ready = until(lambda: subprocess.run(["ss", "-ltnH", f"sport = :{port}"], capture_output=True, text=True).stdout)
check("mosquitto runs with the example", broker_ready)
options = ["--cafile", f"{pki}/ca.pem", "--cert", f"{pki}/log.pem", "--key", f"{pki}/log.key", "-t", "badged/#"]
consumer = Consumer("log", port, *options, host="localhost")
secure = Host("secure", port, sock, scheme="mqtts",
              broker=f"ca = {pki}/ca.pem\ncertificate = {pki}/client.pem\nkey = {pki}/client.key")
check("a host is online by its certificate", online(consumer, secure), secure.log())
check("a client watches", until(badged.tap))
wanted = badged.told[-1][2]
check("its taps reach the log", until(lambda: any(e["id"] == wanted for e in consumer.events())), secure.log())
with open(secure.file, "a", encoding="utf-8") as file:
    file.write("[homeassistant]\nenabled = yes\n")
secure.end(signal.SIGTERM)
secure.start()
check("with Home Assistant it is online", online(consumer, secure), secure.log())
log = os.path.join(broker.folder, "log")
secure.end(signal.SIGTERM)
removed = secure.run("--forget")
check("the ACL lets the discovery through, and --forget ends well", removed.returncode == 0 and "5 messages" in removed.stdout and
      "refuses the discovery" not in secure.log(), (removed, secure.log()))
secure.start()
foreign = Host("another", port, sock, scheme="mqtts",
               broker=f"ca = {pki}/ca.pem\ncertificate = {pki}/client.pem\nkey = {pki}/client.key")
check("a host cannot write below the name of another", until(lambda: "refuses" in foreign.log()) and not any(
    "another" in m["topic"] for m in consumer.messages()), foreign.log())
foreign.end(signal.SIGTERM)
secure.end(signal.SIGTERM)
broker.end()

# MARK: Configuration
def checked(name, *lines):
    """What --check-config says of a file with these lines of [broker] and [queue]."""
    path = os.path.join(work, name + ".conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write("[broker]\nurl = mqtts://localhost:1\n" + "\n".join(lines) + "\n")
    return subprocess.run([brokers.program, "--config", path, "--check-config"], capture_output=True, text=True)


folder = f"[queue]\nfolder = {work}"
with open(os.path.join(pki, "garbage.pem"), "w", encoding="ascii") as file:
    file.write("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
openssl("pkcs8", "-topk8", "-in", "client.key", "-out", "locked.key", "-passout", "pass:x")
good = checked("good", f"ca = {pki}/ca.pem", f"certificate = {pki}/client.pem", f"key = {pki}/client.key", folder)
check("--check-config accepts files that fit", good.returncode == 0 and "is right" in good.stdout, good)
absent = checked("absent", f"ca = {pki}/ca.pem", f"certificate = {pki}/client.pem",
                 "key = /run/credentials/badged-mqtt.service/client.key", folder)
check("a credential of the service is a note", absent.returncode == 0 and "note: /run/credentials" in absent.stdout, absent)
os.symlink("circle", os.path.join(work, "circle"))
for name, words, *lines in (
        ("pair", "is the key of another certificate", f"certificate = {pki}/client.pem", f"key = {pki}/server.key", folder),
        ("garbage", "has no certificates", f"ca = {pki}/garbage.pem", folder),
        ("keyless", "has no key", f"certificate = {pki}/client.pem", f"key = {pki}/client.pem", folder),
        ("locked", "encrypted with a passphrase", f"certificate = {pki}/client.pem", f"key = {pki}/locked.key", folder),
        ("swapped", "has no certificate", f"certificate = {pki}/client.key", f"key = {pki}/client.key", folder),
        ("gone", "there is no file", f"certificate = {pki}/client.pem", f"key = {pki}/none.key", folder),
        ("late", "has expired", f"certificate = {pki}/old.pem", f"key = {pki}/old.key", folder),
        ("secret", "there is no file", "user = a", f"password_file = {work}/none", folder),
        ("folder", "cannot be stored in", f"[queue]\nfolder = {work}/none"),
        ("file", "cannot be stored in", f"[queue]\nfolder = {pki}/ca.pem"),
        ("circle", "symbolic links", folder, f"[server]\nsocket = {work}/circle")):
    result = checked(name, *lines)
    check(f"--check-config tries what is named ({name})", result.returncode == 78 and words in result.stderr, result)

wrong = os.path.join(work, "wrong.conf")
with open(wrong, "w", encoding="utf-8") as file:
    file.write("[broker]\nurl = mqtt://broker.example\nkeepaliv = 3\n[publish]\ncredentials = hashed\nhost = a/b\n")
result = subprocess.run([brokers.program, "--config", wrong, "--check-config"], capture_output=True, text=True)
check("--check-config names all faults, and ends with 78", result.returncode == 78 and all(
    text in result.stderr for text in ("line 3: unknown key 'keepaliv'", "line 6", "only for this computer", "needs a site key")), result)
finish()

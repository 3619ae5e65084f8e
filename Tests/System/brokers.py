# SPDX-License-Identifier: GPL-3.0-or-later
"""A badged in software, a mosquitto with its clients, and badged-mqtt, for mqtt.py, mqtt_faults.py and
mqtt_figures.py."""

import base64
import contextlib
import hashlib
import hmac
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

from harness import check, children, until

SITE_KEY = bytes(range(32))
# The program, and the folder for files.
program, work = "", ""


def use(binaries, folder):
    """Must be called first: where the programs are, and where files may be written."""
    global program, work
    program, work = f"{binaries}/badged-mqtt", folder


def pseudonym(x):
    return base64.urlsafe_b64encode(hmac.digest(SITE_KEY, b"badged credential\0" + x, "sha256")).rstrip(b"=").decode()


class FakeBadged:
    """Answers the commands of badged-mqtt. A tap is read, and numbered, only while a client watches."""

    def __init__(self, path, denied=(), is_silent=False):
        """`is_silent`: accepts connections, and says nothing."""
        self.path, self.denied, self.started, self.is_silent = path, denied, time.time(), is_silent
        self.lock = threading.Lock()
        self.clients, self.watchers, self.number, self.told = [], [], 0, []
        self.commands = set()
        # The clock of the calendar.
        self.clock = time.time
        if os.path.exists(path):
            os.remove(path)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.clients.append(client)
            if not self.is_silent:
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    @staticmethod
    def send(client, **message):
        client.sendall(json.dumps(message).encode() + b"\n")

    def serve(self, client):
        # A client that is killed ends its own thread, in the middle of a line too, and nothing else.
        try:
            self.send(client, msg="READER", name="Desk", attached=True, insertable=False, keypad=False, driver="pcsc",
                      card={"kind": "eid", "retryCounter": 3})
            for line in client.makefile():
                command = json.loads(line)
                if self.is_silent:
                    continue
                name, request = command["cmd"], command.get("request")
                self.commands.add(name)
                if name in self.denied:
                    self.send(client, msg="ACCESS_DENIED", error=name, missing=["x"], granted=[], request=request)
                elif name == "GET_INFO":
                    self.send(client, msg="INFO", VersionInfo={"Name": "badged", "Implementation-Version": "0.1.0"},
                              badged={"protocol": 1, "drivers": [], "scanners": []}, request=request)
                elif name == "GET_METRICS":
                    self.send(client, msg="METRICS", request=request, metrics=[
                        {"name": "badged_start_time_seconds", "type": "gauge", "help": "",
                         "samples": [{"value": self.started}]}])
                elif name == "GET_HEALTH":
                    self.send(client, msg="HEALTH", request=request, checks=[{"name": "pcscd", "ok": True}])
                elif name == "START_CREDENTIALS":
                    with self.lock:
                        self.watchers.append(client)
                        self.send(client, msg="CREDENTIALS", watching=True, validated=False, issuers=0, request=request)
                elif name == "START_OPENINGS":
                    self.send(client, msg="OPENINGS", watching=True, request=request)
        except (OSError, json.JSONDecodeError):
            pass
        with self.lock:
            for group in (self.clients, self.watchers):
                if client in group:
                    group.remove(client)
            client.close()

    def hang(self):
        """Sends the first part of a message, and says nothing from then on."""
        with self.lock:
            self.is_silent = True
            for client in self.watchers:
                try:
                    client.sendall(b'{"msg":"CREDENTIAL","num')
                except OSError:
                    pass

    def tap(self):
        """A person holds a card to the reader. Returns whether it was read."""
        with self.lock:
            if not self.watchers or self.is_silent:
                return False
            self.number += 1
            key = b"\4" + hashlib.sha256(str(self.number).encode()).digest() + bytes(32)
            message = dict(msg="CREDENTIAL", number=self.number, time=int(self.clock() * 1000), reader="Desk",
                           protocol="pkoc-se1", verified=True, publicKey=key.hex(), certificate=None,
                           numbers={"bits64": key[25:33].hex(), "decimal64": "1"}, transaction="00" * 16)
            self.told.append((self.started, self.number, pseudonym(key[1:33])))
            for client in list(self.watchers):
                try:
                    self.send(client, **message)
                except OSError:
                    pass
            return True

    def stop(self):
        # Ends the thread in accept, before the number of the descriptor is used again.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.lock:
            for client in self.clients:
                try:
                    client.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


class Broker:
    # The newest broker of each port.
    at = {}

    def __init__(self, name, port, lines, persistence=False):
        self.port, self.folder = port, os.path.join(work, name)
        # mosquitto opens one after the other.
        self.ports = [port, *map(int, re.findall(r"^listener (\d+)", lines, re.MULTILINE))]
        for one in self.ports:
            Broker.at[one] = self
        os.makedirs(self.folder, exist_ok=True)
        os.chmod(self.folder, 0o777)
        self.file = os.path.join(self.folder, "mosquitto.conf")
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(f"user root\nlistener {port} 127.0.0.1\nmax_queued_messages 100000\n{lines}\n")
            for kind in ("error", "warning", "notice", "information", "subscribe"):
                file.write(f"log_type {kind}\n")
            if persistence:
                file.write(f"persistence true\npersistence_location {self.folder}/\nautosave_interval 1\nautosave_on_changes true\n")
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(["mosquitto", "-c", self.file], stdout=subprocess.DEVNULL,
                                        stderr=open(os.path.join(self.folder, "log"), "ab"))
        children.append(self.process)
        until(self.answers)

    def answers(self):
        try:
            for port in self.ports:
                socket.create_connection(("127.0.0.1", port)).close()
            return True
        except OSError:
            return False

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8") as file:
            return file.read()

    def end(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait()


class Link:
    """A connection to the broker with faults. Each fault is for connections that begin after it is set, but for `is_cut` and
    `holds_answers`."""

    def __init__(self, port):
        self.target = port
        # All bytes are held back, without a sign.
        self.is_cut = False
        # What the broker says is held back.
        self.holds_answers = False
        # What the broker says is swallowed.
        self.is_silent = False
        # Bytes a second in each direction; None: as fast as possible.
        self.rate = None
        # After how many whole packets of host and broker the connection is cut.
        self.packets = (None, None)
        self.connections = 0
        # What the hosts have sent.
        self.heard = b""
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.server.accept()
            self.connections += 1
            try:
                broker = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            for source, target, limit, is_answer in ((client, broker, self.packets[0], False),
                                                     (broker, client, self.packets[1], True)):
                is_silent = is_answer and self.is_silent
                threading.Thread(target=self.copy, args=(source, target, limit, is_answer, is_silent), daemon=True).start()

    def copy(self, source, target, limit, is_answer, is_silent):
        waiting = b""
        try:
            while limit != 0 and (data := source.recv(4096)):
                while self.is_cut or self.holds_answers and is_answer:
                    time.sleep(0.05)
                if is_silent:
                    continue
                if not is_answer:
                    self.heard += data
                if self.rate:
                    time.sleep(len(data) / self.rate)
                if limit is None:
                    target.sendall(data)
                    continue
                waiting += data
                while limit > 0 and (size := packet_size(waiting)) is not None:
                    target.sendall(waiting[:size])
                    waiting, limit = waiting[size:], limit - 1
        except OSError:
            pass
        for one in (source, target):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class RawBroker:
    """Answers to CONNECT with bytes, and says nothing more."""

    def __init__(self, *answers):
        self.answers, self.connections = answers, 0
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.server.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            client.recv(4096)
            for answer in self.answers:
                client.sendall(answer)
            self.connections += 1
            while client.recv(4096):
                pass
        except OSError:
            pass
        client.close()


def packet_size(data):
    """The size of the first packet of MQTT; None if it is not whole."""
    length = 0
    for index, byte in enumerate(data[1:5]):
        length |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            size = index + 2 + length
            return size if len(data) >= size else None
    return None


class Consumer:
    """A client with a session of its own, which records all messages. It is subscribed when the constructor
    returns, unless `waits` is false: the broker may refuse it."""

    def __init__(self, name, port, *options, host="127.0.0.1", waits=True):
        broker = Broker.at[port]
        # A broker may allow less than QoS 1.
        subscribed = re.compile(f": {re.escape(name)} [01] ")
        subscriptions = len(subscribed.findall(broker.log()))
        self.path = os.path.join(work, f"{name}.messages")
        open(self.path, "w", encoding="utf-8").close()
        self.process = subprocess.Popen(
            ["mosquitto_sub", "-h", host, "-p", str(port), "-V", "5", "-i", name, "-c", "-x", "3600", "-q", "1",
             "-t", "#", "-F", "%J", *options], stdout=open(self.path, "a", encoding="utf-8"), stderr=subprocess.DEVNULL)
        children.append(self.process)
        if waits:
            until(lambda: len(subscribed.findall(broker.log())) > subscriptions)

    def messages(self, kind=None):
        found = []
        with open(self.path, encoding="utf-8") as file:
            for line in file:
                if not line.endswith("\n"):
                    break
                message = json.loads(line)
                if kind is None or message["topic"].endswith("/" + kind):
                    message["payload"] = json.loads(message["payload"]) if isinstance(message["payload"], str) and \
                        message["payload"].startswith("{") else message["payload"]
                    found.append(message)
        return found

    def events(self, kind="credential"):
        return [message["payload"] for message in self.messages(kind) if message["payload"]]

    def last(self, kind):
        found = self.messages(kind)
        return (found[-1]["payload"] if found else None) or {}


class Host:
    """badged-mqtt with its files."""

    def __init__(self, name, port, badged, broker="", publish="", more="", scheme="mqtt", folder=None,
                 environment=None):
        self.environment = {**os.environ, **(environment or {})}
        self.name, self.topic, self.folder = name, name, folder or os.path.join(work, name)
        os.makedirs(self.folder, exist_ok=True)
        os.chmod(self.folder, 0o700)
        key = os.path.join(work, "site.key")
        if not os.path.exists(key):
            with open(key, "wb") as file:
                file.write(SITE_KEY)
            os.chmod(key, 0o600)
        self.file = os.path.join(work, name + ".conf")
        if "reconnect_max" not in broker:
            broker += "\nreconnect_max = 1"
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(f"[broker]\nurl = {scheme}://localhost:{port}\n{broker}\n"
                       f"[publish]\nhost = {name}\ncredentials = hashed\nopenings = yes\nsite_key = {key}\n{publish}\n"
                       f"[server]\nsocket = {badged}\n[queue]\nfolder = {self.folder}\n{more}\n")
        self.process = None
        self.start()

    def start(self):
        # The log of the process that runs now begins here, and its states have this uptime or a later one, in ms.
        self.begin, self.started = len(self.log()), time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
        self.process = subprocess.Popen([program, "--config", self.file], stdout=subprocess.DEVNULL, env=self.environment,
                                        stderr=open(os.path.join(work, self.name + ".log"), "ab"))
        children.append(self.process)

    def end(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        return self.process.wait()

    def edit(self, old, new):
        """Replaces a part of the configuration file."""
        with open(self.file, encoding="utf-8") as file:
            text = file.read()
        assert old in text, (old, text)
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new))

    @contextlib.contextmanager
    def frozen(self):
        """The host stands still, for example until a consumer is ready for what it sends."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def log(self):
        with open(os.path.join(work, self.name + ".log"), "a+", encoding="utf-8") as file:
            file.seek(0)
            return file.read()

    def processor_time(self):
        """Seconds."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            words = file.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self):
        """The private part of the resident memory in KiB."""
        with open(f"/proc/{self.process.pid}/smaps_rollup", encoding="ascii") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith("Private"))

    def status(self):
        try:
            with open(os.path.join(self.folder, "status.json"), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return {"connected": False, "waiting": 0}

    def run(self, *arguments, text=""):
        return subprocess.run([program, "--config", self.file, *arguments], input=text, capture_output=True, text=True)


def judge(name, badged_runs, consumer):
    """Checks the stream of taps: in order, no hole without a gap, duplicates equal, all ids those of the taps."""
    seen, order, gaps = {}, [], []
    faults = []
    for event in consumer.events():
        place = (event["epoch"], event["sequence"])
        if place in seen:
            if seen[place] != event:
                faults.append(f"{place} has two contents")
            continue
        seen[place] = event
        order.append(place)
        gaps += event.get("gap", [])
    newest = {}
    for epoch, sequence in order:
        last = newest.get(epoch, 0)
        if sequence <= last:
            faults.append(f"{sequence} after {last}")
        missing = range(last + 1, sequence)
        covered = [n for n in missing if any(g.get("from", 0) <= n <= g.get("to", -1) for g in gaps)]
        if len(covered) != len(missing):
            faults.append(f"a hole before {sequence}")
        newest[epoch] = sequence
    told = [entry[2] for run in badged_runs for entry in run.told]
    ids = [event["id"] for event in (seen[place] for place in order)]
    lost = len(told) - len(ids)
    missed = sum(gap.get("missed", 0) for gap in gaps)
    positions = {one: index for index, one in enumerate(told)}
    if any(one not in positions for one in ids) or sorted(ids, key=positions.get) != ids:
        faults.append("the taps are not in order")
    if len(set(ids)) != len(ids):
        faults.append("a tap has two numbers")
    if lost > missed or lost < 0:
        faults.append(f"{lost} taps are lost, and gaps tell {missed}")
    check(f"{name}: {len(ids)} of {len(told)} taps in order, {missed} told as missed, none lost silently", not faults,
          faults[:5])
    return gaps


def received(consumer, count):
    return until(lambda: len({(e["epoch"], e["sequence"]) for e in consumer.events()}) >= count)


def online(consumer, host):
    """Waits until the process of the host that runs now is online, and watches."""
    def is_online():
        log = host.log()[host.begin:]
        if not ("connected to badged" in log and "connected to the broker" in log):
            return False
        states = [m["payload"] for m in consumer.messages("state") if m["topic"].split("/")[-2] == host.topic and m["payload"]]
        return states and states[-1]["state"] == "online" and states[-1]["watching"] and states[-1]["uptime"] >= host.started
    return until(is_online)


def arrives(consumer, badged):
    """Whether the newest tap reaches the consumer."""
    wanted = badged.told[-1][2]
    return until(lambda: any(e.get("id") == wanted for e in consumer.events()))


def tap_arrives(consumer, badged):
    return bool(until(badged.tap)) and arrives(consumer, badged)


def paho_client(name, port, heard, topic="badged/1/#"):
    """A consumer with the library paho-mqtt, which appends its messages to `heard`. It is subscribed when this returns."""
    from paho.mqtt import client as paho  # of Debian: python3-paho-mqtt
    versions = getattr(paho, "CallbackAPIVersion", None)
    client = paho.Client(*([versions.VERSION2] if versions else []), client_id=name, protocol=paho.MQTTv5)
    subscribed = threading.Event()
    client.on_message = lambda client, data, message: heard.append(message)
    client.on_connect = lambda client, *more: client.subscribe(topic, 1)
    client.on_subscribe = lambda client, *more: subscribed.set()
    client.connect("127.0.0.1", port)
    client.loop_start()
    until(subscribed.is_set)
    return client


def retained_messages(port):
    """All retained messages of a broker. They come before a message that is sent after the subscription."""
    heard = []
    client = paho_client("retained", port, heard, "#")
    client.publish("end", qos=1)
    until(lambda: any(message.topic == "end" for message in list(heard)))
    client.disconnect()
    client.loop_stop()
    return [message for message in heard if message.retain]

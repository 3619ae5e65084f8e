# SPDX-License-Identifier: GPL-3.0-or-later
"""A badged in software, a mosquitto with its clients, and badged-mqtt, for mqtt.py and mqtt_figures.py."""

import base64
import hashlib
import hmac
import json
import os
import signal
import socket
import subprocess
import threading
import time

from harness import children, until

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

    def __init__(self, path, denied=()):
        self.path, self.denied, self.started = path, denied, int(time.time())
        self.lock = threading.Lock()
        self.clients, self.watchers, self.number, self.told = [], [], 0, []
        self.commands = set()
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
            self.send(client, msg="READER", name="Desk", attached=True, insertable=False, keypad=False,
                      card={"kind": "eid", "retryCounter": 3})
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    @staticmethod
    def send(client, **message):
        client.sendall(json.dumps(message).encode() + b"\n")

    def serve(self, client):
        try:
            for line in client.makefile():
                command = json.loads(line)
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
        except OSError:
            pass
        with self.lock:
            for group in (self.clients, self.watchers):
                if client in group:
                    group.remove(client)
            client.close()

    def tap(self):
        """A person holds a card to the reader. Returns whether it was read."""
        with self.lock:
            if not self.watchers:
                return False
            self.number += 1
            key = b"\4" + hashlib.sha256(str(self.number).encode()).digest() + bytes(32)
            message = dict(msg="CREDENTIAL", number=self.number, time=int(time.time() * 1000), reader="Desk",
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
    def __init__(self, name, port, lines, persistence=False):
        self.port, self.folder = port, os.path.join(work, name)
        os.makedirs(self.folder, exist_ok=True)
        os.chmod(self.folder, 0o777)
        self.file = os.path.join(self.folder, "mosquitto.conf")
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(f"user root\nlistener {port} 127.0.0.1\nmax_queued_messages 100000\n{lines}\n")
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
            socket.create_connection(("127.0.0.1", self.port)).close()
            return True
        except OSError:
            return False

    def end(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait()


class Link:
    """A connection to the broker that can be cut without a sign, and that cuts each connection after some bytes."""

    def __init__(self, port):
        self.target, self.isCut, self.budget = port, False, None
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.server.accept()
            try:
                broker = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            rest = [self.budget]
            for pair in ((client, broker), (broker, client)):
                threading.Thread(target=self.copy, args=(*pair, rest), daemon=True).start()

    def copy(self, source, target, rest):
        try:
            while data := source.recv(4096):
                while self.isCut:
                    time.sleep(0.05)
                if rest[0] is not None:
                    data = data[:rest[0]]
                    rest[0] -= len(data)
                if data:
                    target.sendall(data)
                if rest[0] == 0:
                    break
        except OSError:
            pass
        for one in (source, target):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Consumer:
    """A client with a session of its own, which records all messages."""

    def __init__(self, name, port, *options, host="127.0.0.1"):
        self.path = os.path.join(work, f"{name}.messages")
        open(self.path, "w", encoding="utf-8").close()
        self.process = subprocess.Popen(
            ["mosquitto_sub", "-h", host, "-p", str(port), "-V", "5", "-i", name, "-c", "-x", "3600", "-q", "1",
             "-t", "#", "-F", "%J", *options], stdout=open(self.path, "a", encoding="utf-8"), stderr=subprocess.DEVNULL)
        children.append(self.process)
        time.sleep(0.3)

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

    def __init__(self, name, port, badged, broker="", publish="", more="", scheme="mqtt", folder=None):
        self.name, self.folder = name, folder or os.path.join(work, name)
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
        self.process = subprocess.Popen([program, "--config", self.file], stdout=subprocess.DEVNULL,
                                        stderr=open(os.path.join(work, self.name + ".log"), "ab"))
        children.append(self.process)

    def end(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        return self.process.wait()

    def log(self):
        with open(os.path.join(work, self.name + ".log"), encoding="utf-8") as file:
            return file.read()

    def status(self):
        with open(os.path.join(self.folder, "status.json"), encoding="utf-8") as file:
            return json.load(file)

    def run(self, *arguments, text=""):
        return subprocess.run([program, "--config", self.file, *arguments], input=text, capture_output=True, text=True)

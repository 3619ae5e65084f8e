# SPDX-License-Identifier: GPL-3.0-or-later
"""The three programs of the peer test: AusweisApp2, badged, and the card in its virtual reader."""

import json
import os
import select
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.parse
import urllib.request

from websocket import WebSocket

READER = "Virtual PCD 00 00"
VPCD = "127.0.0.1:35963"


class Terminal:
    """A program that changes PINs, and one client of it."""

    def __init__(self, name, process, client):
        self.name, self.process, self.client = name, process, client
        self.reader = None

    def receive(self, seconds=20):
        message = self.client.receive(seconds)
        if message.get("msg") == "READER" and message.get("name") == READER:
            self.reader = message
        return message

    def wait_for_card(self, present):
        """Until the terminal has said that a usable card is in the reader, or none."""
        self.client.send({"cmd": "GET_READER", "name": READER})
        while self.reader is None or bool(self.reader.get("card")) != present:
            self.receive()

    def change_pin(self, answers):
        """Runs RUN_CHANGE_PIN; `answers` maps a question to what is typed, in order.
        Gives the questions with the counter they showed, and the last message."""
        answers = {question: list(values) for question, values in answers.items()}
        asked = []
        self.client.send({"cmd": "RUN_CHANGE_PIN"})
        while True:
            message = self.receive()
            name = message.get("msg")
            if name in ("ENTER_PIN", "ENTER_CAN", "ENTER_PUK", "ENTER_NEW_PIN"):
                asked.append((name, message["reader"]["card"]["retryCounter"]))
                if not answers.get(name):
                    self.client.send({"cmd": "CANCEL"})
                    continue
                self.client.send({"cmd": name.replace("ENTER", "SET"), "value": answers[name].pop(0)})
            elif name == "CHANGE_PIN" and "success" in message:
                return asked, message
            elif name in ("BAD_STATE", "INVALID", "UNKNOWN_COMMAND", "INTERNAL_ERROR"):
                raise RuntimeError(f"{self.name} answered {message}")

    def authenticate(self, url, answers, chat=None):
        """Runs RUN_AUTH with a client that answers at once. `chat`: the optional rights that the user leaves ticked.
        Gives the last message and the names of all that came before."""
        answers = {question: list(values) for question, values in answers.items()}
        seen = []
        self.client.send({"cmd": "RUN_AUTH", "tcTokenURL": url})
        while True:
            message = self.receive(60)
            name = message.get("msg")
            seen.append(name)
            if name == "ACCESS_RIGHTS" and chat is not None:
                self.client.send({"cmd": "SET_ACCESS_RIGHTS", "chat": chat})
                chat = None
            elif name == "ACCESS_RIGHTS":
                self.client.send({"cmd": "ACCEPT"})
            elif name in ("ENTER_PIN", "ENTER_CAN"):
                if not answers.get(name):
                    self.client.send({"cmd": "CANCEL"})
                    continue
                self.client.send({"cmd": name.replace("ENTER", "SET"), "value": answers[name].pop(0)})
            elif name == "AUTH" and ("result" in message or "error" in message):
                return message, seen
            elif name in ("BAD_STATE", "INVALID", "UNKNOWN_COMMAND", "INTERNAL_ERROR"):
                raise RuntimeError(f"{self.name} answered {message}")

    def stop(self):
        self.client.close()
        stop(self.process)


def stop(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def start_peer(folder, port, roots=()):
    """AusweisApp2 without screen, with a home of its own. `roots`: CVCA certificates that it is to trust for tests."""
    program = "AusweisApp2"
    if roots:
        beside = os.path.join(folder, "peer")
        os.makedirs(beside, exist_ok=True)
        program = shutil.copy2(shutil.which("AusweisApp2"), beside)
    for root in roots:
        # It takes further roots from beside its program, as DER in spite of their name, and reads them as text: a byte
        # 0D would be lost.
        with open(root, "rb") as file:
            content = file.read()
        assert b"\r" not in content
        with open(os.path.join(beside, os.path.basename(root) + ".hex"), "wb") as file:
            file.write(content)
    home = os.path.join(folder, "home")
    os.makedirs(home, mode=0o700, exist_ok=True)
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "QT_QPA_PLATFORM": "offscreen",
                   "HOME": home, "XDG_RUNTIME_DIR": home, "XDG_CONFIG_HOME": home, "TMPDIR": home}
    with open(os.path.join(folder, "peer.log"), "ab") as log:
        process = subprocess.Popen([program, "--ui", "websocket", "--port", str(port), "--no-logfile"],
                                   env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    connect(process, lambda: socket.create_connection(("127.0.0.1", port)).close())
    # A client that comes in the first milliseconds often never hears of a reader; one that comes later does.
    for _ in range(5):
        time.sleep(0.3)
        terminal = Terminal("AusweisApp2", process, WebSocket(port))
        try:
            while terminal.reader is None:
                terminal.receive(3)
            return terminal
        except TimeoutError:
            terminal.client.close()
    raise RuntimeError("AusweisApp2 sees no reader")


class UnixClient:
    """JSON lines over badged's socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.received = b""

    def send(self, message):
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, seconds):
        deadline = time.monotonic() + seconds
        while b"\n" not in self.received:
            self.socket.settimeout(max(deadline - time.monotonic(), 0.001))
            data = self.socket.recv(65536)
            if not data:
                raise ConnectionError("badged closed the connection")
            self.received += data
        line, self.received = self.received.split(b"\n", 1)
        return json.loads(line)

    def close(self):
        self.socket.close()


def start_badged(program, folder, roots=()):
    """`roots`: CVCA certificates that it is to trust for tests."""
    path = os.path.join(folder, "badged.sock")
    anchors = os.path.join(folder, "anchors")
    os.makedirs(os.path.join(anchors, "test"), exist_ok=True)
    for root in roots:
        shutil.copy(root, os.path.join(anchors, "test"))
    configuration = os.path.join(folder, "badged.conf")
    with open(configuration, "w") as file:
        file.write(f"[eid]\ntrust_anchors={anchors}\n")
    with open(os.path.join(folder, "badged.log"), "ab") as log:
        process = subprocess.Popen([program, "--socket", path, "--config", configuration], stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log)
    return Terminal("badged", process, connect(process, lambda: UnixClient(path)))


def connect(process, attempt):
    """A program says to nobody when it begins to listen."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return attempt()
        except (ConnectionRefusedError, FileNotFoundError):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the program does not listen; its log says why") from None
            time.sleep(0.02)


class Card:
    """badged-virtual-card in the reader from here until `remove`."""

    def __init__(self, program, folder, description):
        path = os.path.join(folder, "card.json")
        with open(path, "w") as file:
            json.dump({"card": description}, file)
        self.log = open(os.path.join(folder, "card.log"), "ab")
        self.process = subprocess.Popen([program, "--vpcd", VPCD, "--card", path], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=self.log)
        self.received = b""

    def state(self):
        """What the card says of itself, with the microseconds it has worked so far."""
        self.process.send_signal(signal.SIGUSR2)
        deadline = time.monotonic() + 10
        while True:
            while b"\n" in self.received:
                line, self.received = self.received.split(b"\n", 1)
                if line.startswith(b"{"):
                    return json.loads(line)
            if not select.select([self.process.stdout], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise TimeoutError("the card does not tell its state")
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise RuntimeError("badged-virtual-card has ended; see card.log")
            self.received += data

    def remove(self):
        stop(self.process)
        self.process.stdout.close()
        self.log.close()


class EIDServer:
    """badged-eidserver from here until `stop`."""

    def __init__(self, program, folder):
        self.log = open(os.path.join(folder, "eidserver.log"), "ab")
        self.process = subprocess.Popen([program, "--out", folder], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=self.log)
        self.token = self.process.stdout.readline().decode().strip()
        if not self.token:
            raise RuntimeError("badged-eidserver has ended; see eidserver.log")
        self.roots = [os.path.join(folder, name) for name in ("cvca.cvcert", "cvca-next.cvcert")]
        # Of the authority in tls-ca.pem.
        self.context = ssl.create_default_context(cafile=os.path.join(folder, "tls-ca.pem"))

    def url(self, parameters, listener=None):
        """The address of a token; `listener` is one of /listeners instead of the usual port."""
        token = self.get("listeners")[listener] + "/tctoken" if listener else self.token
        return token + ("?" + urllib.parse.urlencode(parameters) if parameters else "")

    def report(self, session="last"):
        return self.get(f"report/{session}")

    def get(self, path):
        origin = self.token.rsplit("/", 1)[0]
        with urllib.request.urlopen(f"{origin}/{path}", timeout=10, context=self.context) as answer:
            return json.load(answer)

    def stop(self):
        stop(self.process)
        self.process.stdout.close()
        self.log.close()

# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of the peer test: AusweisApp2, badged, a card in their virtual reader, and the eID-Server."""

import json
import os
import shutil
import socket
import ssl
import subprocess
import time
import urllib.parse
import urllib.request

from cards import READER, stop
from harness import LIMIT, Client, Daemon, children
from websocket import WebSocket

PIN, CAN = "123456", "500540"


class Terminal:
    """A program that uses the card, and one client of it."""

    def __init__(self, name, process, client):
        self.name, self.process, self.client = name, process, client
        self.reader = None

    def next(self, *limit):
        """The next message; the last READER of our reader is kept in `reader`."""
        message = self.client.next(*limit)
        if message is None:
            raise ConnectionError(f"{self.name} closed the connection")
        # AusweisApp2 adds a handle to the name of a reader of another device.
        if message.get("msg") == "READER" and message.get("name", "").startswith(READER):
            self.reader = message
        return message

    def wait_for_card(self, present):
        """Waits until the terminal has reported a usable card in the reader, or none."""
        self.client.send(cmd="GET_READER", name=READER)
        while self.reader is None or bool(self.reader.get("card")) != present:
            self.next()

    def change_pin(self, old, new, **others):
        """Changes the PIN. `old` may be a list; `others` are the answers to ENTER_CAN and ENTER_PUK.
        Returns the questions with the retry counter that they showed, and the last message."""
        answers = {"ENTER_PIN": old, "ENTER_NEW_PIN": new, **others}
        asked = []
        self.client.send(cmd="RUN_CHANGE_PIN")
        last = self._run(answers, lambda name, message: name == "CHANGE_PIN" and "success" in message, asked)
        return asked, last

    def authenticate(self, url, answers, chat=None):
        """Authenticates, and accepts at once. `chat` lists the optional rights that the user grants.
        Returns the last message."""
        def choose(message):
            nonlocal chat
            if chat is None:
                self.client.send(cmd="ACCEPT")
            else:
                self.client.send(cmd="SET_ACCESS_RIGHTS", chat=chat)
                chat = None
        self.client.send(cmd="RUN_AUTH", tcTokenURL=url)
        return self._run(answers, lambda name, message: name == "AUTH" and ("result" in message or "error" in message), [],
                         choose)

    def _run(self, answers, is_last, asked, choose=None):
        answers = {question: [values] if isinstance(values, str) else list(values) for question, values in answers.items()}
        while True:
            message = self.next()
            name = message.get("msg")
            if is_last(name, message):
                return message
            if name == "ACCESS_RIGHTS" and choose:
                choose(message)
            elif name in ("ENTER_PIN", "ENTER_CAN", "ENTER_PUK", "ENTER_NEW_PIN"):
                asked.append((name, message["reader"]["card"]["retryCounter"]))
                if answers.get(name):
                    self.client.send(cmd=name.replace("ENTER", "SET"), value=answers[name].pop(0))
                else:
                    self.client.send(cmd="CANCEL")
            elif name in ("BAD_STATE", "INVALID", "UNKNOWN_COMMAND", "INTERNAL_ERROR"):
                raise RuntimeError(f"{self.name} answered {message}")

    def stop(self):
        self.client.close()
        stop(self.process)


def start_peer(folder, port=24727, roots=(), environment=None):
    """Starts AusweisApp2 without a window, with a home of its own. It trusts the CVCA certificates `roots` in tests."""
    process = launch_peer(folder, port, roots, environment=environment)
    wait_for_listener(process, port)
    # A client that connects in the first milliseconds may never get a READER; a later one does.
    for _ in range(40):
        terminal = Terminal("AusweisApp2", process, WebSocket(port))
        try:
            while terminal.reader is None:
                terminal.next(3)
            return terminal
        except TimeoutError:
            terminal.client.close()
    raise RuntimeError("AusweisApp2 sees no reader")


def copy_once(program, folder):
    """Copies the program, and drops the copy from the page cache as ../uncache.sh does."""
    copy = os.path.join(folder, os.path.basename(program))
    if not os.path.exists(copy):
        shutil.copy2(program, copy)
        with open(copy, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return copy


def launch_peer(folder, port=24727, roots=(), user_interface=("--ui", "websocket"), environment=None):
    program = shutil.which("AusweisApp2")
    if roots:
        beside = os.path.join(folder, "peer")
        os.makedirs(beside, exist_ok=True)
        program = copy_once(program, beside)
    for root in roots:
        # AusweisApp2 reads further roots from the folder of its program: DER, in spite of the suffix, but as text, which
        # loses a byte 0D.
        with open(root, "rb") as file:
            content = file.read()
        assert b"\r" not in content
        with open(os.path.join(beside, os.path.basename(root) + ".hex"), "wb") as file:
            file.write(content)
    home = os.path.join(folder, "home")
    os.makedirs(home, mode=0o700, exist_ok=True)
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "QT_QPA_PLATFORM": "offscreen",
                   "HOME": home, "XDG_RUNTIME_DIR": home, "XDG_CONFIG_HOME": home, "TMPDIR": home, **(environment or {})}
    with open(os.path.join(folder, "peer.log"), "ab") as log:
        process = subprocess.Popen([program, *user_interface, "--port", str(port), "--no-logfile"],
                                   env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    children.append(process)
    return process


def wait_for_listener(process, port):
    """Waits until AusweisApp2 listens. No event reports this."""
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            if process.poll() is not None:
                raise RuntimeError("AusweisApp2 has ended; see peer.log") from None
            time.sleep(0.0005)


def start_badged(program, folder, roots=()):
    """Starts badged. It trusts the CVCA certificates `roots`."""
    daemon, path = launch_badged(program, folder, roots)
    daemon.manager.wait_for("READY")
    return Terminal("badged", daemon.process, Client(path))


def launch_badged(program, folder, roots=()):
    path = os.path.join(folder, "badged.sock")
    anchors = os.path.join(folder, "anchors")
    os.makedirs(os.path.join(anchors, "test"), exist_ok=True)
    for root in roots:
        shutil.copy(root, os.path.join(anchors, "test"))
    configuration = os.path.join(folder, "badged.conf")
    with open(configuration, "w") as file:
        file.write(f"[eid]\ntrust_anchors={anchors}\n")
    return Daemon(program, ["--socket", path, "--config", configuration], folder, wait=False), path


class EIDServer:
    """badged-eidserver, until `stop`."""

    def __init__(self, program, folder):
        self.log = open(os.path.join(folder, "eidserver.log"), "ab")
        self.process = subprocess.Popen([program, "--out", folder], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=self.log)
        children.append(self.process)
        self.token = self.process.stdout.readline().decode().strip()
        if not self.token:
            raise RuntimeError("badged-eidserver has ended; see eidserver.log")
        self.roots = [os.path.join(folder, name) for name in ("cvca.cvcert", "cvca-next.cvcert")]
        self.context = ssl.create_default_context(cafile=os.path.join(folder, "tls-ca.pem"))

    def url(self, parameters, listener=None):
        """The address of a TcToken; `listener` is one of /listeners in place of the usual port."""
        token = self.get("listeners")[listener] + "/tctoken" if listener else self.token
        return token + ("?" + urllib.parse.urlencode(parameters) if parameters else "")

    def report(self, session="last"):
        return self.get(f"report/{session}")

    def get(self, path):
        origin = self.token.rsplit("/", 1)[0]
        with urllib.request.urlopen(f"{origin}/{path}", timeout=LIMIT, context=self.context) as answer:
            return json.load(answer)

    def stop(self):
        stop(self.process)
        self.process.stdout.close()
        self.log.close()

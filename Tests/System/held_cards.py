# SPDX-License-Identifier: GPL-3.0-or-later
"""Cards that another program holds, and workflows that end while their card is opened. Started by held-cards.sh."""

import ctypes
import json
import os
import subprocess
import sys
import threading
import time

from cards import READER, Card
from harness import Client, Daemon, check, children, finish, until
from wallet import AUTHORITY, WORDS

binaries, work = sys.argv[1:3]
SECOND = "Virtual PCD 00 01"
ENDS = ("CHANGE_PIN", "AUTH", "FLOW_INTERRUPTED", "FLOW_COMPLETE", "WALLET_RESULT")


class Holder:
    """Another program of PC/SC, with a connection to the card in the reader."""

    library = ctypes.CDLL("libpcsclite.so.1")
    SHARED, EXCLUSIVE = 2, 1
    RESET = 0x80100068

    def __init__(self, mode=SHARED):
        self.context, self.card, protocol = ctypes.c_long(), ctypes.c_long(), ctypes.c_ulong()
        self._call("SCardEstablishContext", ctypes.c_ulong(2), None, None, ctypes.byref(self.context))
        arguments = (self.context, READER.encode(), ctypes.c_ulong(mode), ctypes.c_ulong(3), ctypes.byref(self.card),
                     ctypes.byref(protocol))
        # badged connects for a moment now and then, which is in the way of an exclusive connection.
        until(lambda: self.library.SCardConnect(*arguments) == 0)

    def _call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            raise OSError(f"{name}: {code & 0xFFFFFFFF:08x}")

    def begin(self):
        # badged resets a card that it has used.
        while code := self.library.SCardBeginTransaction(self.card):
            if code & 0xFFFFFFFF != self.RESET:
                raise OSError(f"SCardBeginTransaction: {code & 0xFFFFFFFF:08x}")
            self._call("SCardReconnect", self.card, ctypes.c_ulong(self.SHARED), ctypes.c_ulong(3), ctypes.c_ulong(0),
                       ctypes.byref(ctypes.c_ulong()))

    def end(self):
        self._call("SCardEndTransaction", self.card, ctypes.c_ulong(0))

    def leave(self):
        self._call("SCardReleaseContext", self.context)


class Taker:
    """A client that runs one command that takes a card."""

    def __init__(self, command):
        self.command = command
        self.client = Client(path)

    def send(self, *commands):
        """Sends several lines in one write."""
        self.client.socket.sendall(b"".join(json.dumps(command).encode() + b"\n" for command in commands))

    def until(self, *names):
        """Waits for one of the messages, and agrees to what it is asked before a card is needed."""
        while True:
            message = self.client.next()
            if message["msg"] == "ACCESS_RIGHTS":
                self.client.send(cmd="ACCEPT")
            if message["msg"] == "VERIFY_DATA":
                self.client.send(cmd="DATA_VERIFIED")
            if message["msg"] in names and (message["msg"] not in ENDS or len(message) > 1):
                return message

    def held(self):
        """Waits until the client is told that another program holds the card. Returns the message and the seconds."""
        begin = time.monotonic()
        while "error" not in (message := self.until("INSERT_CARD")):
            pass
        return message, time.monotonic() - begin

    def question(self):
        return self.until("ENTER_PIN")

    def end(self):
        return self.until(*ENDS)


def start(state):
    """badged with this folder of state, and with the eID-Server and the authority of the virtual Keycards."""
    folder = os.path.join(work, state)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    configuration = os.path.join(work, "badged.conf")
    with open(configuration, "w", encoding="ascii") as file:
        file.write(f"[nfc]\nenabled = no\n[wallet]\ncard_authorities = {AUTHORITY}\n[eid]\ntrust_anchors = {work}/anchors\n")
    return Daemon(f"{binaries}/badged", ["--socket", path, "--config", configuration], work,
                  environment={"STATE_DIRECTORY": folder})


def eid_server():
    anchors = os.path.join(work, "anchors", "test")
    os.makedirs(anchors)
    server = subprocess.Popen([f"{binaries}/badged-eidserver", "--out", anchors], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    children.append(server)
    return server.stdout.readline().decode().strip()


def known(kind):
    """Waits until badged has recognised the card in the reader. Returns its members."""
    client = Client(path)
    client.send(cmd="GET_READER", name=READER)
    while True:
        message = client.wait_for("READER")
        card = message.get("card")
        if message["name"] == READER and card and card.get("kind") == kind:
            client.close()
            return card


def is_usable(kind, command, sentence):
    """The card is as before: READER shows it, the next client is asked for the PIN, and no try is lost."""
    tries = virtual.state()["retryCounter"]
    told = known(kind)
    client = Taker(command)
    client.send(command)
    while (asked := client.until("ENTER_PIN", "INSERT_CARD", *ENDS))["msg"] == "INSERT_CARD":
        # The workflow of a client that has left, or the use by the other program, may still end.
        if "does not answer" in asked.get("error", ""):
            break
    check(sentence, asked["msg"] == "ENTER_PIN" and tries == 3, (told, asked, tries))
    client.send({"cmd": "CANCEL"})
    client.end()
    client.client.close()


def is_told(message, seconds, sentence):
    check(f"{sentence} (after {seconds:.2f} s)", message.get("reader") == READER and "Another program" in message.get("error", ""),
          message)


path = os.path.join(work, "badged.sock")
os.makedirs("/run/pcscd", exist_ok=True)
with open(os.path.join(work, "pcscd.log"), "ab") as log:
    children.append(subprocess.Popen(["pcscd", "--foreground"], stdin=subprocess.DEVNULL, stdout=log, stderr=log))
url = eid_server()
daemon = start("state")

for kind, description, commands in [
        ("eid", {"latencyMs": 3}, [{"cmd": "RUN_CHANGE_PIN"}, {"cmd": "RUN_AUTH", "tcTokenURL": url}]),
        ("keycard", {"kind": "keycard", "version": "4.0", "words": WORDS, "latencyMs": 3},
         [{"cmd": "RUN_WALLET", "workflow": name, "challenge": "00" * 32} for name in ("RESET_PIN", "ACTIVATE_USER")])]:
    virtual = Card(f"{binaries}/badged-virtual-card", work, description)
    known(kind)
    for command in commands:
        name = command.get("workflow", command["cmd"])

        for _ in range(12):
            client = Taker(command)
            client.send(command, {"cmd": "CANCEL"})
            client.end()
            client.client.close()
        is_usable(kind, command, f"{name} and CANCEL in one write say nothing about the card")
        for _ in range(12):
            client = Taker(command)
            client.send(command)
            client.client.close()
        is_usable(kind, command, f"a closed connection right after {name} says nothing about the card")

        other = Holder()
        other.begin()
        client = Taker(command)
        client.send(command)
        is_told(*client.held(), f"{name}: a client is told that another program holds the card")
        client.send({"cmd": "CANCEL"})
        client.end()
        client.client.close()
        client = Taker(command)
        client.send(command)
        is_told(*client.held(), f"{name}: the next client is told as well")
        client.client.close()
        waiting = Taker(command)
        waiting.send(command)
        is_told(*waiting.held(), f"{name}: so is a client after a closed connection")
        other.end()
        asked = waiting.until("ENTER_PIN", *ENDS)
        check(f"{name} goes on by itself after the transaction", asked["msg"] == "ENTER_PIN", asked)
        waiting.send({"cmd": "CANCEL"})
        waiting.end()
        waiting.client.close()
        is_usable(kind, command, f"{name}: the card is usable after the transaction")

        # Transactions of 50 ms, with pauses of 50 ms.
        stopped = threading.Event()

        def hold_again_and_again():
            while not stopped.is_set():
                other.begin()
                stopped.wait(0.05)
                other.end()
                stopped.wait(0.05)

        thread = threading.Thread(target=hold_again_and_again)
        thread.start()
        for number in range(12):
            client = Taker(command)
            client.send(command)
            stopped.wait(0.02 * number)
            client.send({"cmd": "CANCEL"})
            client.end()
            client.client.close()
        stopped.set()
        thread.join()
        other.leave()
        is_usable(kind, command, f"{name}: CANCEL between short transactions says nothing about the card")

        client = Taker(command)
        other = Holder(Holder.EXCLUSIVE)
        client.send(command)
        is_told(*client.held(), f"{name}: a client is told of an exclusive connection")
        check("READER still shows the card", known(kind), "")
        client.send({"cmd": "CANCEL"})
        client.end()
        client.send(command)
        client.held()
        other.leave()
        asked = client.until("ENTER_PIN", *ENDS)
        check(f"{name} goes on by itself after the exclusive connection", asked["msg"] == "ENTER_PIN", asked)
        client.client.close()
        is_usable(kind, command, f"{name}: the card is usable after the exclusive connection")
    virtual.remove()

# The card is held before badged can recognise it.
virtual = Card(f"{binaries}/badged-virtual-card", work, {})
known("eid")
daemon.end()
other = Holder()
other.begin()
daemon = start("state")
client = Taker({"cmd": "RUN_CHANGE_PIN"})
client.client.send(cmd="SET_API_LEVEL", level=3)
client.send(client.command)
is_told(*client.held(), "a client is told of a card that cannot be recognised because another program holds it")
shown = client.client.ask("READER", cmd="GET_READER", name=READER)
check("READER shows an unknown card meanwhile", shown["card"] == {}, shown)

# A card in another reader is taken instead.
second = Card(f"{binaries}/badged-virtual-card", work, {}, vpcd="127.0.0.1:35964")
asked = client.question()
check("a card in another reader is used meanwhile", asked["reader"]["name"] == SECOND, asked)
client.send({"cmd": "CANCEL"})
client.end()
other.end()
check("the card is recognised after the transaction", known("eid")["retryCounter"] == 3)
is_usable("eid", {"cmd": "RUN_CHANGE_PIN", "reader": READER}, "it is usable")

# With a known card in each reader, the one that is free is taken, and the other one stays usable.
other.begin()
client.send(client.command)
asked = client.question()
check("of two known cards the free one is used", asked["reader"]["name"] == SECOND, asked)
client.send({"cmd": "CANCEL"})
client.end()
other.end()
is_usable("eid", {"cmd": "RUN_CHANGE_PIN", "reader": READER}, "the held card is usable after the transaction")
other.leave()
second.remove()


def leaves(card):
    """Takes the card out, and waits until badged knows it."""
    card.remove()
    client = Client(path)
    client.send(cmd="GET_READER", name=READER)
    while True:
        message = client.wait_for("READER")
        if message["name"] == READER and not message.get("card"):
            return client.close()


leaves(virtual)
virtual = Card(f"{binaries}/badged-virtual-card", work, {})
known("eid")
recognised = virtual.state()["apdus"]
leaves(virtual)


def falls_silent(after, answers, reason):
    """The card does not answer this command of a change of the PIN, and the user cancels."""
    virtual = Card(f"{binaries}/badged-virtual-card", work, {"faults": [{"afterApdu": recognised + after, "do": "mute"}]})
    known("eid")
    commands = recognised + after + 1
    client = Taker({"cmd": "RUN_CHANGE_PIN"})
    client.send(client.command)
    for question, value in answers:
        client.until(question)
        begin = time.monotonic()
        client.client.send(cmd=question.replace("ENTER", "SET"), value=value)
    until(lambda: virtual.state()["apdus"] == commands)
    client.send({"cmd": "CANCEL"})
    end = client.until(*ENDS)
    seconds = time.monotonic() - begin
    # The answer of the card may come for 5 s.
    check(f"CANCEL ends a dialogue whose command {after} gets no answer: {reason}",
          end.get("reason") == reason and seconds > 4, (end, seconds))
    check("and nothing is sent afterwards", virtual.state()["apdus"] == commands and
          virtual.state()["retryCounter"] == 3, virtual.state())
    client.client.close()
    leaves(virtual)


# The mapping of PACE, and the new PIN, of which nobody knows then whether the card has it.
falls_silent(5, [("ENTER_PIN", "123456")], "User_Cancelled")
falls_silent(8, [("ENTER_PIN", "123456"), ("ENTER_NEW_PIN", "654321")], "Change_Pin_No_SetEidPinCommand_Response")
finish()

# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of badged for wallet cards."""

import hashlib
import os

from cards import READER
from harness import Client, Daemon
from wallet_keys import compressed, times

PIN, PUK = "123456", "987654321098"
WORDS = "abandon " * 11 + "about"
# The authority of the virtual 4.0 cards.
AUTHORITY = compressed(times(int(hashlib.sha256(b"badged: authority of virtual Keycards").hexdigest(), 16))).hex()


def start_badged(program, folder, authorities=(), node=None, network=None):
    """Starts badged with pcscd. It trusts Keycards of these authorities, which are compressed keys, and asks this node of
    antelope.py, through this NetworkRecorder."""
    state = os.path.join(folder, "state")
    os.makedirs(state, mode=0o700, exist_ok=True)
    path, configuration = os.path.join(folder, "badged.sock"), os.path.join(folder, "badged.conf")
    with open(configuration, "w", encoding="ascii") as file:
        file.write(f"[nfc]\nenabled = no\n[wallet]\ncard_authorities = {', '.join(authorities) or 'none'}\n")
        if node:
            file.write(f"node = {node.url}\nchain_id = {node.CHAIN.hex()}\nhttp_callbacks = yes\n")
    return Daemon(program, ["--socket", path, "--config", configuration], folder,
                  environment={"STATE_DIRECTORY": state, **(network.environment if network else {})}), path


# The command that answers a question.
ANSWERS = {"SHOW_PAPER_WALLET": "ACCEPT", "SHOW_PUK": "ACCEPT", "SHOW_SESSION_KEY": "ACCEPT", "WALLET_REQUEST": "ACCEPT",
           "VERIFY_DATA": "DATA_VERIFIED", "REGISTER_DEVICE": "DEVICE_REGISTERED"}
ERRORS = ("BAD_STATE", "INVALID", "UNKNOWN_COMMAND", "INTERNAL_ERROR", "ACCESS_DENIED")


class Wallet:
    """A client, and the last READER of the reader with the card."""

    def __init__(self, path):
        self.client = Client(path)
        self.reader = None

    def next(self):
        message = self.client.next()
        if message is None:
            raise ConnectionError("badged closed the connection")
        if message["msg"] == "READER" and message["name"] == READER:
            self.reader = message
        return message

    def card(self, present=True):
        """Waits until badged has reported a card in the reader, or none. Returns its members."""
        return self._told(lambda card: (card is not None) == present)

    def keycard(self):
        """Waits until badged has recognised the wallet card in the reader. Returns its members.

        A card that leaves while badged recognises it can be reported as an unknown one, without members."""
        return self._told(lambda card: card is not None and card.get("kind") == "keycard")

    def _told(self, fits):
        self.reader = None
        self.client.send(cmd="GET_READER", name=READER)
        while True:
            self.next()
            if self.reader and self.reader["attached"] and fits(self.reader["card"]):
                return self.reader["card"]

    def run(self, workflow, answers, on=lambda message: None, **members):
        """Runs a workflow of RUN_WALLET; see `dialogue`."""
        return self.dialogue({"cmd": "RUN_WALLET", "workflow": workflow, **members}, answers, on)

    def dialogue(self, command, answers, on=lambda message: None):
        """Runs a workflow, and returns its messages up to the final one.

        `answers` has for each question that needs one a value, a list of values that are used up, or a function of the
        message. A question that waits for a look alone is answered by itself. `on` sees each message before its answer."""
        answers = {name: list(value) if isinstance(value, list) else value for name, value in answers.items()}
        messages = []
        self.client.send(**command)
        while True:
            message = self.next()
            name = message["msg"]
            if name in ("READER", "STATUS"):
                continue
            messages.append(message)
            on(message)
            if name in ("FLOW_COMPLETE", "FLOW_INTERRUPTED", "WALLET_RESULT") or name in ERRORS:
                return messages
            answer = self._answer(name, message, answers)
            if answer is not None:
                self.client.send(question=message["question"], **answer)

    @staticmethod
    def _answer(name, message, answers):
        if name == "REGISTER_DEVICE":
            return {"cmd": ANSWERS[name], "apiResponse": {"device": {"address": message["apiParams"]["address"]}}}
        if name in ANSWERS:
            return {"cmd": ANSWERS[name]}
        if not name.startswith("ENTER_"):
            return None
        value = answers.get(name)
        if callable(value):
            value = value(message)
        elif isinstance(value, list):
            value = value.pop(0) if value else None
        return {"cmd": "CANCEL"} if value is None else {"cmd": name.replace("ENTER", "SET"), "value": value}

    def close(self):
        self.client.close()

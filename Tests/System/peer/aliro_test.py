# SPDX-License-Identifier: GPL-3.0-or-later
"""aliro_test.py BIN WORK: badged reads a device of others, and a reader of others reads our virtual card. ALIRO_PEER is a
folder with the programs aliro-card and aliro-reader.

aliro-card --identifier HEX --reader-key POINT --stdin is a card in a reader of vpcd. It prints `ready POINT`, and obeys
`insert`, `remove` and `quit`. aliro-reader --key HEX --identifier HEX --reader NAME --state FILE reads a card once through
PC/SC, and prints `granted POINT standard|fast` or `failed TEXT`. docs/testing.md, AusweisApp2 as the judge.
"""
import json
import os
import subprocess
import sys

from cards import READER, Card
from harness import Client, Daemon, check, finish

binaries, work = sys.argv[1:]
peer = os.environ["ALIRO_PEER"]
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "../../Vectors/aliro.json"), encoding="utf-8") as file:
    vectors = json.load(file)
IDENTIFIER, KEY, POINT = vectors["identifier"], vectors["reader"]["private"], vectors["reader"]["public"]
COMPRESSED = ("03" if int(POINT, 16) & 1 else "02") + POINT[2:66]
CARD = vectors["card"]["public"]
PKCS8 = "3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420"

path, configuration, key = (os.path.join(work, "aliro." + name) for name in ("sock", "conf", "key"))
with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
    file.write(bytes.fromhex(PKCS8 + KEY))
with open(configuration, "w", encoding="utf-8") as file:
    file.write("[nfc]\nenabled=no\n[ble]\nenabled=no\n[credentials]\n"
               f"aliro_key={key}\naliro_group={IDENTIFIER[:32]}\naliro_subgroup={IDENTIFIER[32:]}\n")


class Device:
    """The card of others, which trusts readers with this key."""

    def __init__(self, reader_key):
        self.process = subprocess.Popen(
            [os.path.join(peer, "aliro-card"), "--identifier", IDENTIFIER, "--reader-key", reader_key, "--stdin"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        line = self.process.stdout.readline()
        if not line.startswith("ready "):
            sys.exit("aliro-card has ended")
        self.point = line.split()[1].lower()

    def say(self, word):
        self.process.stdin.write(word + "\n")

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def await_card(present):
    while (client.wait_for("READER").get("card") is not None) != present:
        pass


daemon = Daemon(f"{binaries}/badged", ["--socket", path, "--config", configuration], work)
client = Client(path)
while client.wait_for("READER")["name"] != READER:
    pass
client.ask("CREDENTIALS", cmd="START_CREDENTIALS")

device = Device(POINT)
transactions = set()
for tap in range(20):
    if tap > 0:
        device.say("remove")
        await_card(False)
        device.say("insert")
    told = client.wait_for("CREDENTIAL")
    fits = told["verified"] and told["protocol"] == "Aliro" and told["publicKey"] == device.point
    if tap == 0 or not fits:
        check("the key of the card is read", fits, told)
    transactions.add(told.get("transaction"))
check("20 taps have 20 transactions", len(transactions) == 20, transactions)
device.end()
await_card(False)

device = Device(vectors["card"]["public"])
told = client.wait_for("CREDENTIAL")
check("a card that trusts another key refuses our readers", (told["verified"], told["reason"]) == (False, "refused"), told)
device.end()
await_card(False)
# badged reports when pcscd has a card. It only recognises the card, before the reader of others
# reads it.
client.ask("CREDENTIALS", cmd="STOP_CREDENTIALS")


def read(state, reader_key=KEY):
    """The words of the reader of others."""
    result = subprocess.run([os.path.join(peer, "aliro-reader"), "--key", reader_key, "--identifier", IDENTIFIER,
                             "--reader", READER, "--state", os.path.join(work, state)],
                            stdout=subprocess.PIPE, text=True, check=False)
    return result.stdout.split()


def insert(**more):
    virtual = Card(f"{binaries}/badged-virtual-card", work,
                   {"kind": "aliro", "key": vectors["card"]["private"], "reader": COMPRESSED, **more})
    await_card(True)
    return virtual


virtual = insert()
check("the reader of others reads our card", read("aliro-state") == ["granted", CARD, "standard"])
check("its second tap is the fast phase", read("aliro-state") == ["granted", CARD, "fast"])
check("with nothing kept it is the standard phase again", read("state-2") == ["granted", CARD, "standard"])
state = virtual.state()
# The third tap had a cryptogram, too, which the reader could not know.
check("our card has signed twice", (state["signatures"], state["cryptograms"]) == (2, 2), state)
check("our card refuses a reader with another key", read("state-3", vectors["card"]["private"])[0] == "failed")
virtual.remove()
await_card(False)
virtual = insert(signature="wrong")
check("the reader of others refuses a wrong signature", read("state-4")[0] == "failed")
check("our card has signed", virtual.state()["signatures"] == 1)
virtual.remove()
await_card(False)
client.close()
code, _ = daemon.end()
check("badged ends without an error", code == 0, daemon.log())
finish()

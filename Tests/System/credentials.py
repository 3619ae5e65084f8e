# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual cards with PKOC and Aliro behind vpcd, a real pcscd, and badged. Started by credentials.sh."""

import json
import os
import subprocess
import sys

from cards import READER, Card
from harness import Client, Daemon, check, children, finish

binaries, work, vectors = sys.argv[1:4]
with open(os.path.join(vectors, "pkoc-nfc.json"), encoding="utf-8") as file:
    data = json.load(file)
with open(os.path.join(vectors, "aliro.json"), encoding="utf-8") as file:
    aliro = json.load(file)
PLAIN = {"key": data["own"]["card"]["private"]}
CERTIFIED = {"key": data["cvc"]["subject"]["private"], "certificate": data["cvc"]["certificate"]}
KEYS = {"pkoc-se1": data["own"]["card"]["public"], "pkoc-se2": data["cvc"]["subject"]["public"]}
ISSUER = f"{data['cvc']['iir']}:{data['cvc']['issuer']['compressed']}"
PUBLIC = aliro["reader"]["public"]
ALIRO = {"kind": "aliro", "key": aliro["card"]["private"], "reader": ("03" if int(PUBLIC, 16) & 1 else "02") + PUBLIC[2:66]}
FAULTS = ("remove", "removeAfter", "garbage", "flipBit", "sw:6F00", "replay")


def card(description):
    return Card(f"{binaries}/badged-virtual-card", work, {"kind": "pkoc", **description})


def start(name, settings):
    """Starts badged with these lines of [credentials], and a client that watches."""
    path, configuration = os.path.join(work, name + ".sock"), os.path.join(work, name + ".conf")
    with open(configuration, "w", encoding="utf-8") as file:
        file.write("[nfc]\nenabled=no\n[ble]\nenabled=no\n[eid]\ndate=2026-11-22\n[credentials]\n" + settings)
    daemon = Daemon(f"{binaries}/badged", ["--socket", path, "--config", configuration], work)
    client = Client(path)
    while client.wait_for("READER")["name"] != READER:
        pass
    state = client.ask("CREDENTIALS", cmd="START_CREDENTIALS")
    check("the client watches", state["watching"], state)
    return daemon, client, path


def await_card(client, present):
    while (client.wait_for("READER").get("card") is not None) != present:
        pass


def take_away(client, virtual):
    """Removes the card, and waits until badged has no card.

    pcscd may notice the removal before this one late, and never that the card came back: then no message follows.
    """
    virtual.remove()
    client.send(cmd="GET_READER", name=READER, request="gone")
    reader = client.wait_for("READER")
    while reader.get("request") != "gone":
        reader = client.wait_for("READER")
    while reader.get("card") is not None:
        reader = client.wait_for("READER")


def read_after(description, number, fault, recognition):
    """Inserts a card with a fault at a command, taps it until its key is proven, and returns what was told.

    `recognition` is the number of commands before READER shows the card.
    """
    virtual = card({**description, "faults": [{"afterApdu": number, "do": fault}]})
    if fault.startswith("remove"):
        virtual.wait_for("withdrawn")
        # A card that comes back before pcscd has noticed its removal is the same card, and is not read twice.
        if number >= recognition:
            await_card(client, True)
            await_card(client, False)
        virtual.toggle()
    else:
        # READER comes before the card is read.
        await_card(client, True)
        while virtual.state()["apdus"] <= number:
            pass
        virtual.toggle()
        virtual.wait_for("withdrawn")
        await_card(client, False)
        virtual.toggle()
    told = []
    while not told or not told[-1]["verified"]:
        told.append(client.wait_for("CREDENTIAL"))
    take_away(client, virtual)
    return told


os.makedirs("/run/pcscd", exist_ok=True)
with open(os.path.join(work, "pcscd.log"), "ab") as log:
    children.append(subprocess.Popen(["pcscd", "--foreground"], stdin=subprocess.DEVNULL, stdout=log, stderr=log))
daemon, client, path = start("plain", f"issuers = {ISSUER}\n")

for name, description, expected in [
        ("SE V1", PLAIN, ("pkoc-se1", True, None)),
        ("SE V2", CERTIFIED, ("pkoc-se2", True, "valid")),
        ("SE V2 in parts", {**CERTIFIED, "partLength": 50}, ("pkoc-se2", True, "valid")),
        ("a wrong signature of SE V1", {**PLAIN, "signature": "wrong"}, ("pkoc-se1", False, None)),
        ("a wrong signature of SE V2", {**CERTIFIED, "signature": "wrong"}, ("pkoc-se2", False, None))]:
    virtual = card(description)
    told = client.wait_for("CREDENTIAL")
    state = (told.get("certificate") or {}).get("state")
    check(f"{name} is told as it is", (told["protocol"], told["verified"], state) == expected, told)
    if told["verified"]:
        check("the key is that of the card", told["publicKey"] == KEYS[told["protocol"]], told)
    else:
        check("a wrong signature has no key", told["reason"] == "wrongSignature" and "publicKey" not in told, told)
    take_away(client, virtual)

# A tag has a number and no proof.
for description, expected in [
        ({"kind": "tag"}, {"uid": "04a1b2c3d4e5f6", "type": "mifareUltralight", "random": False}),
        ({"kind": "tag", "type": "mifareClassic1K", "uid": "01020304"},
         {"uid": "01020304", "type": "mifareClassic1K", "random": False}),
        ({"kind": "tag", "type": "ntag", "uid": "08a1b2c3"}, {"uid": "08a1b2c3", "type": "ntag", "random": True})]:
    virtual = card(description)
    told = client.wait_for("CREDENTIAL")
    check(f"a tag is told as it is: {expected['type']}", (told["tag"], told["verified"]) == (expected, False), told)
    take_away(client, virtual)

# A phone signs once per activation; each tap is an activation.
virtual = card({**PLAIN, "phone": True})
taps = []
for _ in range(3):
    taps.append(client.wait_for("CREDENTIAL"))
    virtual.toggle()
    await_card(client, False)
    virtual.toggle()
taps.append(client.wait_for("CREDENTIAL"))
check("a phone is read at each tap", all(tap["verified"] for tap in taps), taps)
check("each tap has new random bytes", len({tap["transaction"] for tap in taps}) == 4, taps)
commands = virtual.state()["apdus"]
client.ask("CREDENTIALS", cmd="START_CREDENTIALS")
lying = client.wait_for("CREDENTIAL")
check("START_CREDENTIALS reads a phone that lies there", lying["verified"], lying)
take_away(client, virtual)

# A fault at each command. No wrong key is reported, and the next tap is read.
for count in range(commands):
    # The whole table is in Tests/FeaturesTests; an insertion into vpcd takes half a second.
    for fault in (FAULTS[count % len(FAULTS)], FAULTS[(count + 3) % len(FAULTS)]):
        # A tap takes SELECT, GET DATA and AUTHENTICATE.
        told = read_after(PLAIN, count, fault, commands - 3)
        check(f"after {fault} at command {count} the next tap is read", told[-1]["publicKey"] == KEYS["pkoc-se1"], told)

# badgectl reads a card that lies on the reader.
virtual = card(CERTIFIED)
client.wait_for("CREDENTIAL")
program = subprocess.run([f"{binaries}/badgectl", "--socket", path, "credentials"], capture_output=True, text=True, timeout=120)
line = program.stdout
check("badgectl shows the number", "pkoc-se2, certificate valid of 0100BADGED000001" in line and program.returncode == 0, line)
take_away(client, virtual)
client.close()
code, _ = daemon.end()
check("badged ends without an error", code == 0, daemon.log())
check("the log has no key and no number", data["own"]["identifiers"]["bits64"] not in daemon.log(), daemon.log())

# Aliro
key = os.path.join(work, "aliro.key")
with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
    file.write(bytes.fromhex("3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420"
                             + aliro["reader"]["private"]))
group, subgroup = aliro["identifier"][:32], aliro["identifier"][32:]
daemon, client, path = start("aliro", f"aliro_key = {key}\naliro_group = {group}\naliro_subgroup = {subgroup}\n")
virtual = card(ALIRO)
taps = []
for _ in range(3):
    taps.append(client.wait_for("CREDENTIAL"))
    virtual.toggle()
    await_card(client, False)
    virtual.toggle()
taps.append(client.wait_for("CREDENTIAL"))
check("a card with Aliro is read at each tap", all(tap["publicKey"] == aliro["card"]["public"] for tap in taps), taps)
check("only the first tap is the standard phase", [tap["phase"] for tap in taps] == ["standard"] + 3 * ["fast"], taps)
check("each tap has new random bytes", len({tap["transaction"] for tap in taps}) == 4, taps)
take_away(client, virtual)
virtual = card({**ALIRO, "fast": False})
client.wait_for("CREDENTIAL")
commands = virtual.state()["apdus"]
take_away(client, virtual)
# The last command is EXCHANGE, which follows the proof.
for count in range(commands - 1):
    for fault in (FAULTS[count % len(FAULTS)], FAULTS[(count + 3) % len(FAULTS)]):
        # SELECT, AUTH0, AUTH1 and EXCHANGE
        told = read_after({**ALIRO, "fast": False}, count, fault, commands - 4)
        check(f"after {fault} at command {count} of Aliro the next tap is read",
              told[-1]["publicKey"] == aliro["card"]["public"], told)
for description, expected in (({**ALIRO, "signature": "wrong"}, ("Aliro", "wrongSignature")),
                              ({"kind": "aliro"}, ("Aliro", "refused")),
                              ({"kind": "aliro", "pkoc": True}, ("pkoc-se1", None)), (PLAIN, ("pkoc-se1", None))):
    virtual = card(description)
    told = client.wait_for("CREDENTIAL")
    check(f"a card is told with {expected}", (told["protocol"], told.get("reason")) == expected, told)
    take_away(client, virtual)
client.close()
daemon.end()
check("the log has no key", aliro["card"]["public"][2:34] not in daemon.log(), daemon.log())

# Validated mode
daemon, client, path = start("validated", f"issuers = {ISSUER}\nvalidated = yes\n")
for description, expected in ((CERTIFIED, (True, None)), (PLAIN, (False, "noCertificate"))):
    virtual = card(description)
    told = client.wait_for("CREDENTIAL")
    check("validated mode takes a valid certificate alone", (told["verified"], told.get("reason")) == expected, told)
    take_away(client, virtual)
client.close()
daemon.end()
finish()

# SPDX-License-Identifier: GPL-3.0-or-later
"""badged as the phone lends the card behind a real pcscd, badged at the desk uses it. Started by remote.sh.

The phone is on the host of this script, the desk on the other one. The cable in between can be cut.
"""

import os
import subprocess
import sys

from cards import READER, Card
from harness import LIMIT, Client, check, children, children_of, finish, internet_sockets, sleeps
from hosts import ON_OTHER, OTHER, OWN, Host, connect_hosts, cut, ip, mend

binaries, work = sys.argv[1:3]
PIN, NEW = "123456", "654321"


def wait_for_reader(client, present):
    """Waits until the desk has reported the reader of the phone with a card, or has lost it."""
    while True:
        message = client.wait_for("READER")
        if present and message.get("remote") and message["card"] or not present and not message["attached"]:
            return message


def ask_pin(client):
    """The next question for a secret, or the end of the PIN change."""
    while True:
        message = client.next()
        if message["msg"].startswith("ENTER_") or message.get("success") is not None:
            return message


connect_hosts()
os.makedirs("/run/pcscd", exist_ok=True)
with open(os.path.join(work, "pcscd.log"), "ab") as log:
    children.append(subprocess.Popen(["pcscd", "--foreground"], stdin=subprocess.DEVNULL, stdout=log, stderr=log))
card = Card(f"{binaries}/badged-virtual-card", work, {})
anchors = os.path.join(work, "anchors", "test")
os.makedirs(anchors)
server = subprocess.Popen([*ON_OTHER, f"{binaries}/badged-eidserver", "--out", anchors], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
children.append(server)
token = server.stdout.readline().strip()
phone = Host(binaries, work, "phone", f"[remote]\nshare=yes\nreaders={READER}\nname=phone\n", [])
desk = Host(binaries, work, "desk",
            f"[pcsc]\nenabled=no\n[eid]\ntrust_anchors={work}/anchors\n[remote]\nenabled=yes\nname=desk\n", ON_OTHER)

print("pairing", flush=True)
code, written = desk.run("remote", "pair", "--timeout", "0", "--pin-stdin")
check("without a device that pairs badgectl ends with 1", code == 1, written)
sharing, digits = phone.open_pairing()
wrong = "0000" if digits != "0000" else "0001"
code, written = desk.run("remote", "pair", "phone", "--timeout", "100", "--pin-stdin", typed=f"{wrong}\n{digits}\n")
check("a wrong code ends a script", code == 1 and "The code is wrong" in written, written)
code, written = desk.run("remote", "pair", "phone", "--timeout", "100", "--pin-stdin", typed=f"{digits}\n")
check("the right code pairs after a wrong one", code == 0 and "Paired with phone" in written, written)
said, _ = sharing.communicate(timeout=LIMIT)
check("the phone says with whom it is paired", sharing.returncode == 0 and "Paired with desk" in said, said)
fingerprint = phone.state()["fingerprint"]
check("each side knows the other one",
      [device["fingerprint"] for device in desk.state()["lenders"]] == [fingerprint]
      and phone.state()["borrowers"][0]["name"] == "desk", (desk.state(), phone.state()))

print("a card that is far away", flush=True)
client = Client(desk.path)
name = wait_for_reader(client, True)["name"]
code, written = desk.run("change-pin", "--pin-stdin", typed=f"{PIN}\n{NEW}\n")
check("a PIN change works", code == 0, written)
code, written = desk.run("auth", "--pin-stdin", "--yes", token, typed=f"{NEW}\n")
check("an authentication works", code == 0 and "ResultMajor=ok" in written, written)
check("no try is spent", card.state()["retryCounter"] == 3, card.state())
for host in (phone, desk):
    check("badged itself has no socket of the Internet", not internet_sockets(host.daemon.pid))
    runs = children_of(host.daemon.pid, "badged-remote")
    check("one badged-remote has them", len(runs) == 1 and internet_sockets(runs[0]), runs)
    check("it sleeps between two messages", sleeps(runs[0]))
code, written = desk.run("readers")
check("badgectl names the reader and the network", name in written and "over the network" in written, written)

print("the cable is cut at the question for the new PIN", flush=True)
client.send(cmd="RUN_CHANGE_PIN", handleInterrupt=False)
ask_pin(client)
client.send(cmd="SET_PIN", value=NEW)
asked = ask_pin(client)
check("the PIN is accepted", asked["msg"] == "ENTER_NEW_PIN", asked)
cut()
client.wait_for("INSERT_CARD")
check("the lost phone is a lost card; no try is spent", card.state()["retryCounter"] == 3, card.state())
mend()
for place, interface, number in (OWN, OTHER):
    ip(*place, "address", "flush", "dev", interface, "scope", "global")
    ip(*place, "-6", "address", "add", f"fd09::{number}/64", "dev", interface, "nodad")
asked = ask_pin(client)
check("with the cable, and IPv6 alone, the questions begin again", asked["msg"] == "ENTER_PIN", asked)
client.send(cmd="SET_PIN", value=NEW)
ask_pin(client)
client.send(cmd="SET_NEW_PIN", value=PIN)
asked = ask_pin(client)
check("the change works after all", asked.get("success") is True, asked)
check("still no try is spent", card.state()["retryCounter"] == 3, card.state())

print("the end of the pairing", flush=True)
code, written = phone.run("remote", "forget", "desk", "--yes")
check("the phone forgets the desk", code == 0 and not phone.state()["borrowers"], written)
wait_for_reader(client, False)
check("the pairing at the desk is still there", len(desk.state()["lenders"]) == 1, desk.state())
code, written = desk.run("remote", "forget", fingerprint[:8], "--yes")
check("the desk forgets the phone", code == 0 and not any(d["paired"] for d in desk.state()["lenders"]), written)
for host in (desk, phone):
    code, _ = host.daemon.end()
    check("badged ends", code == 0, code)
    log = host.daemon.log()
    check("its log has neither a PIN nor the code", not any(word in log for word in (PIN, NEW, digits)), log)
card.remove()
finish()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual Keycards behind vpcd, a real pcscd, and badged. Started by keycard.sh."""

import os
import subprocess
import sys

import antelope
import wallet_operations
import wallet_workflows
from cards import Card
from harness import check, children, finish
from network_recorder import NetworkRecorder
from wallet import AUTHORITY, PIN, PUK, WORDS, Wallet, start_badged
from wallet_keys import derive, key_uid, times

binaries, work = sys.argv[1:3]


def card(description):
    return Card(f"{binaries}/badged-virtual-card", work, {"kind": "keycard", **description})


os.makedirs("/run/pcscd", exist_ok=True)
with open(os.path.join(work, "pcscd.log"), "ab") as log:
    children.append(subprocess.Popen(["pcscd", "--foreground"], stdin=subprocess.DEVNULL, stdout=log, stderr=log))
node = antelope.Node(wallet_operations.ACCOUNT, times(derive(WORDS, wallet_operations.PATH)))
network = NetworkRecorder(binaries, work)
daemon, path = start_badged(f"{binaries}/badged", work, [AUTHORITY], node, network)
wallet = Wallet(path)
wallet.card(present=False)

# Each card, and the members of READER for it. A 3.1 card shows its counters only to a paired
# computer.
UID = key_uid(WORDS)
for name, description, expected in [
        ("a new 3.1 card", {"initialised": False}, (None, False, None, None, None)),
        ("a 3.1 card without keys", {}, ("3.1", True, None, None, None)),
        ("a 3.1 card with keys", {"words": WORDS}, ("3.1", True, UID, None, None)),
        ("a new 4.0 card", {"version": "4.0", "initialised": False}, ("4.0", False, None, None, None)),
        ("a 4.0 card with keys and one try", {"version": "4.0", "words": WORDS, "retryCounter": 1}, ("4.0", True, UID, 1, 5)),
        ("a slow card", {"latencyMs": 20, "words": WORDS}, ("3.1", True, UID, None, None))]:
    virtual = card(description)
    told = wallet.card()
    facts = tuple(told.get(key) for key in ("version", "initialised", "keyUID", "pinTries", "pukTries"))
    check(f"{name} is told with its state", told["kind"] == "keycard" and facts == expected, told)
    state = virtual.state()
    check("the card has the tries that it had", state["retryCounter"] in (0, 3, description.get("retryCounter")), state)
    if "words" in description:
        listed = subprocess.run([f"{binaries}/badgectl", "--socket", path, "readers"], capture_output=True, text=True, check=False)
        check("badgectl readers names the card", "Keycard " + expected[0] in listed.stdout, listed)
    virtual.remove()
    wallet.card(present=False)

# The card leaves at each command of the recognition. After the next insertion READER has the right
# members.
for version in ("3.1", "4.0"):
    virtual = card({"version": version, "words": WORDS})
    wallet.card()
    commands = virtual.state()["apdus"]
    virtual.remove()
    wallet.card(present=False)
    for count in range(commands):
        virtual = card({"version": version, "words": WORDS, "faults": [{"afterApdu": count, "do": "removeAfter"}]})
        virtual.wait_for("withdrawn")
        wallet.card(present=False)
        virtual.toggle()
        told = wallet.keycard()
        check(f"{version}: a card that has left at command {count} is told after the next insertion", told["keyUID"] == UID,
              told)
        state = virtual.state()
        check("no try is lost", (state["retryCounter"], state["pukCounter"]) == (3, 5), state)
        virtual.remove()
        wallet.card(present=False)

# The workflows on a new card, then the operations with the words that it has got.
for version in ("3.1", "4.0"):
    virtual = card({"version": version, "initialised": False})

    def tries():
        state = virtual.state()
        return state["retryCounter"], state["pukCounter"]

    wallet.card()
    wallet_workflows.all_of_them(wallet, version, tries, is_paired=version == "3.1")
    wallet_operations.all_of_them(wallet, version, node, tries)
    wallet.client.ask("WALLET_UNBOUND", cmd="WALLET_UNBIND")
    node.forget()
    virtual.remove()
    wallet.card(present=False)

wallet.close()
node.stop()
key = derive(WORDS, wallet_operations.PATH).to_bytes(32, "big")
network.check([f'"{PIN}"'.encode(), PUK.encode(), WORDS.encode(), key, key.hex().encode()], b"/v1/chain/push_transaction")
code, _ = daemon.end()
check("badged ends without an error", code == 0, daemon.log())
check("the log has no word of the wallet", not any(word in daemon.log() for word in WORDS.split()), daemon.log())
finish()

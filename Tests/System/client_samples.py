# SPDX-License-Identifier: GPL-3.0-or-later
"""The Swift samples of docs/clients.md, compiled and run with cards behind vpcd and a real pcscd. Started by samples.sh.

client_samples.py BINARIES WORK PAGE COMPILER...: the compiler gets a source file, -o and the path of the program.
"""
import os
import subprocess
import sys

import antelope
import wallet_operations
from cards import READER, Card
from harness import LIMIT, Client, Daemon, check, children, finish
from samples import blocks, type_answers
from wallet import PIN, WORDS
from wallet_keys import derive, times

binaries, work, page, *compiler = sys.argv[1:]
sources = [text for _, language, text in blocks(page) if language == "swift" and not text.startswith("// swift-tools-version")]
# The first sample connects. The others continue there.
opening = sources[0].partition("let user = ")[0]
programs = {}
for name, source in zip(("authenticate", "events", "wallet"), [sources[0], *(opening + rest for rest in sources[1:])], strict=True):
    folder = os.path.join(work, "run-" + name)
    os.makedirs(folder)
    with open(os.path.join(folder, "main.swift"), "w", encoding="utf-8") as file:
        file.write(source)
    programs[name] = os.path.join(folder, "program")
    built = subprocess.run([*compiler, file.name, "-o", programs[name]], capture_output=True, text=True, check=False)
    check(f"the sample {name} is a program", built.returncode == 0, built.stderr)
    if built.returncode:
        finish()


def card(description):
    virtual = Card(f"{binaries}/badged-virtual-card", work, description)
    while (told := client.wait_for("READER"))["name"] != READER or not told["card"]:
        pass
    return virtual


def remove(virtual):
    virtual.remove()
    while (told := client.wait_for("READER"))["name"] != READER or told["card"]:
        pass


anchors = os.path.join(work, "trust")
os.makedirs(os.path.join(anchors, "test"))
with open(os.path.join(work, "services.log"), "ab") as log:
    server = subprocess.Popen([f"{binaries}/badged-eidserver", "--out", os.path.join(anchors, "test")], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=log, text=True)
    children.append(server)
    address = server.stdout.readline().strip()
    os.makedirs("/run/pcscd", exist_ok=True)
    children.append(subprocess.Popen(["pcscd", "--foreground"], stdin=subprocess.DEVNULL, stdout=log, stderr=log))
node = antelope.Node("alice", times(derive(WORDS, wallet_operations.PATH)))
path, configuration = (os.path.join(work, name) for name in ("samples.sock", "samples.conf"))
state = os.path.join(work, "samples-state")
os.mkdir(state, mode=0o700)
with open(configuration, "w", encoding="utf-8") as file:
    file.write(f"[nfc]\nenabled=no\n[ble]\nenabled=no\n[eid]\ntrust_anchors={anchors}\n"
               f"[wallet]\ncard_authorities=none\nnode={node.url}\nchain_id={node.CHAIN.hex()}\n")
daemon = Daemon(f"{binaries}/badged", ["--socket", path, "--config", configuration], work, environment={"STATE_DIRECTORY": state})
os.environ["BADGED_SOCKET"] = path
client = Client(path)
while client.wait_for("READER")["name"] != READER:
    pass

virtual = card({"kind": "eid"})
for turn in ("first", "second"):
    code, shown = type_answers([programs["authenticate"], address], ["yes", PIN])
    check(f"the {turn} authentication succeeds", code == 0 and "true https://" in shown and "ResultMajor=ok" in shown, shown)
    check("it asks with the number of tries, and shows no PIN", "PIN, 3 tries left: " in shown and PIN not in shown, shown)
code, shown = type_answers([programs["authenticate"], address], ["no"])
check("without consent there is no success, and no question for a PIN", code == 0 and "false" in shown and "PIN" not in shown, shown)
remove(virtual)

virtual = card({"kind": "keycard", "words": WORDS})
for turn in ("first", "second"):
    code, shown = type_answers([programs["wallet"], ""], ["yes", PIN, PIN, PIN])
    check(f"the {turn} transfer is made", code == 0 and shown.count("\r\ntrue ") == 2, (shown, daemon.log()))
check("the chain has executed both", [(to, amount) for to, amount, _ in node.executed] == [(antelope.name("bob"), 13100)] * 2,
      (node.executed, node.refused))
remove(virtual)

# The program writes a line at once only to a terminal.
terminal, side = os.openpty()
with open(terminal, encoding="utf-8") as lines, subprocess.Popen([programs["events"]], stdout=side, stderr=side) as process:
    os.close(side)
    children.append(process)
    line = lines.readline()
    check("the events begin with the reader", line == f"{READER} no eID card\n", line)
    virtual = card({"kind": "eid"})
    while (line := lines.readline()).endswith(" no eID card\n"):
        pass
    check("the card comes with its tries", line == f"{READER} 3\n", line)
    check("badged ends", daemon.end()[0] == 0, daemon.log())
    check("then the events end, and so does the program", process.wait(LIMIT) == 0, process.returncode)
finish()

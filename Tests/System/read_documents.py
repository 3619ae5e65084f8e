# SPDX-License-Identifier: GPL-3.0-or-later
"""The virtual document behind vpcd, a real pcscd, and badged. Started by read-documents.sh."""

import hashlib
import json
import os
import subprocess
import sys

from cards import READER, Card
from harness import Client, Daemon, check, children, finish

binaries, work, authority = sys.argv[1:4]
CAN = "654321"
MRZ = ["P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<", "L898902C36UTO7408122F3504152<<<<<<<<<<<<<<<4"]
GENUINE, NOT_READ, SUSPECT, UNPROVEN = 0, 1, 6, 7


def card(**description):
    return Card(f"{binaries}/badged-virtual-card", work, {"kind": "document", **description})


def badgectl(*arguments, values=()):
    return subprocess.run([f"{binaries}/badgectl", "--socket", path, *arguments], input="".join(v + "\n" for v in values),
                          capture_output=True, text=True, check=False)


def read(*arguments, values=(CAN,)):
    return badgectl("document", "--pin-stdin", "--reader", READER, *arguments, values=values)


def await_card(present):
    while (reader := client.wait_for("READER"))["name"] != READER or (reader.get("card") is not None) != present:
        pass
    return reader.get("card")


os.makedirs("/run/pcscd", exist_ok=True)
with open(os.path.join(work, "pcscd.log"), "ab") as log:
    children.append(subprocess.Popen(["pcscd", "--foreground"], stdin=subprocess.DEVNULL, stdout=log, stderr=log))
path, configuration, folder = (os.path.join(work, name) for name in ("socket", "badged.conf", "csca"))
with open(configuration, "w", encoding="ascii") as file:
    file.write(f"[nfc]\nenabled=no\n[ble]\nenabled=no\n[documents]\nanchors={folder}\n")
daemon = Daemon(f"{binaries}/badged", ["--socket", path, "--config", configuration], work)
client = Client(path)
while client.wait_for("READER")["name"] != READER:
    pass

virtual = card()
told = await_card(True)
check("READER says only that a document lies there", told == {"kind": "document", "access": ["pace", "bac"]}, told)
listed = badgectl("readers")
check("badgectl readers names it", "electronic document (pace, bac)" in listed.stdout, listed)
before = virtual.state()["apdus"]
check("recognition takes few commands", before <= 20, before)

result = read()
check("without an authority the status is 7", result.returncode == UNPROVEN, result)
check("the verdict says so", "Verdict: unverified" in result.stdout, result.stdout)

with open(authority, "rb") as file:
    digest = hashlib.sha256(file.read()).hexdigest()
wrong = badgectl("documents", "anchors", "import", authority, "--signer", "00" * 32)
check("an authority with another SHA-256 is not imported", wrong.returncode == 1 and not os.path.exists(folder), wrong)
done = badgectl("documents", "anchors", "import", authority, "--signer", digest)
check("the authority is imported", done.returncode == 0, done)

result = read("--portrait", os.path.join(work, "portrait.jpg"))
check("PACE with the CAN: genuine", result.returncode == GENUINE, result)
check("the chip is proven by the mapping", "PACE-CAM passed" in result.stdout, result.stdout)
with open(os.path.join(work, "portrait.jpg"), "rb") as file:
    check("the picture is as the chip has it", file.read(3) == b"\xff\xd8\xff")

result = read(values=("111111", "222222", CAN))
check("a wrong CAN ends a script", result.returncode == NOT_READ, result)
# Once as it happens, once as the reason of the end.
check("it says so, and sends no other line", result.stderr.count("refuses this CAN") == 2, result.stderr)

result = read("--bac", "always", values=MRZ)
check("BAC with the machine readable zone: genuine", result.returncode == GENUINE, result)
check("chip authentication has proven the chip", "CA passed" in result.stdout, result.stdout)

result = read("--bac", "always", values=(MRZ[0], MRZ[1].replace("7408122", "7408222"), *MRZ))
check("a typing error is found by its check digit", "date of birth" in result.stderr, result.stderr)
check("and ends a script", result.returncode == NOT_READ, result)

result = read(values=())
check("without a value no document is read", result.returncode == NOT_READ, result)

result = badgectl("--json", "document", "--pin-stdin", "--reader", READER, "--groups", "1", values=(CAN,))
messages = [json.loads(line) for line in result.stdout.splitlines()]
document = [message for message in messages if message["msg"] == "DOCUMENT"][-1]
check("--json has the messages, also the result", document.get("success") is True, result)
check("no picture without DG2", "portrait" not in document, document.keys())
virtual.remove()
await_card(False)

# Clones and changed data. Each is found, and none is called genuine.
changed = document["groups"][0]["bytes"]
dg1 = bytes([0x61, 0x5B, 0x5F, 0x1F, 0x58]) + "".join(MRZ).replace("ANNA", "EMMA").encode()
check("the changed DG1 is as long as the right one", len(dg1) == changed, (len(dg1), changed))
for name, description, words, arguments, values in [
        ("a clone without the key of the mapping", {"cloned": "cam"}, "PACE-CAM failed (wrong key)", (), (CAN,)),
        ("a clone without the key of chip authentication", {"cloned": "ca"}, "CA failed (wrong key)", ("--bac", "always"), MRZ),
        ("a changed DG1", {"files": {"DG1": dg1.hex()}}, "wrong hash", (), (CAN,)),
        ("a changed EF.CardAccess", {"files": {"CardAccess": "3100"}}, "access differs", (), MRZ)]:
    virtual = card(**description)
    await_card(True)
    result = read(*arguments, values=values)
    check(f"{name} is suspect", result.returncode == SUSPECT, result)
    check(f"{name} has its reason", words in result.stdout, result.stdout)
    virtual.remove()
    await_card(False)

# A document that leaves and comes back goes on without a question: there is one value alone.
virtual = card(faults=[{"afterApdu": before + 10, "do": "remove"}])
await_card(True)
with subprocess.Popen([f"{binaries}/badgectl", "--socket", path, "document", "--pin-stdin", "--reader", READER],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reading:
    reading.stdin.write(CAN + "\n")
    reading.stdin.close()
    reading.stdin = None
    virtual.wait_for("withdrawn")
    await_card(False)
    virtual.toggle()
    out, err = reading.communicate()
    check("a document that leaves and comes back is read to its end", reading.returncode == GENUINE, (out, err))
virtual.remove()

with open(daemon.log_path, encoding="utf-8") as file:
    logged = file.read()
for value in (CAN, "L898902C3", "ERIKSSON", "740812"):
    check(f"{value} is not in the log", value not in logged)
daemon.end()
finish()

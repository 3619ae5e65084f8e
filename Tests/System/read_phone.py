# SPDX-License-Identifier: GPL-3.0-or-later
"""The virtual phone behind vpcd, a real pcscd, and badged. Started by read-phone.sh."""

import hashlib
import os
import subprocess
import sys

from cards import READER, Card
from harness import Client, Daemon, check, children, finish

binaries, work = sys.argv[1:3]
YES, SUSPECT, UNPROVEN, NO, DECLINED = 0, 6, 7, 8, 9


def phone(**description):
    """A phone that is put on the reader with the authority of its documents in a file."""
    card = Card(f"{binaries}/badged-virtual-card", work, {"kind": "mdoc", **description}, arguments=("--iaca", authority))
    card.wait_for("inserted")
    return card


def tap_again(card):
    card.toggle()
    card.wait_for("withdrawn")
    await_card(False)
    card.toggle()
    card.wait_for("inserted")
    await_card(True)


def badgectl(*arguments, values=()):
    return subprocess.run([f"{binaries}/badgectl", "--socket", path, *arguments], input="".join(v + "\n" for v in values),
                          capture_output=True, text=True, check=False)


def over(age=18, *arguments, values=()):
    return badgectl("mdoc", "--over", str(age), "--reader", READER, *arguments, values=values)


def await_card(present):
    while (reader := client.wait_for("READER"))["name"] != READER or (reader.get("card") is not None) != present:
        pass
    return reader.get("card")


os.makedirs("/run/pcscd", exist_ok=True)
with open(os.path.join(work, "pcscd.log"), "ab") as log:
    children.append(subprocess.Popen(["pcscd", "--foreground"], stdin=subprocess.DEVNULL, stdout=log, stderr=log))
path, configuration, folder, authority = (os.path.join(work, n) for n in ("socket", "badged.conf", "iaca", "iaca.cer"))
with open(configuration, "w", encoding="ascii") as file:
    file.write(f"[nfc]\nenabled=no\n[ble]\nenabled=no\n[mdoc]\nanchors={folder}\n")
daemon = Daemon(f"{binaries}/badged", ["--socket", path, "--config", configuration], work)
client = Client(path)
while client.wait_for("READER")["name"] != READER:
    pass

virtual = phone()
told = await_card(True)
check("recognition does not ask the phone", told == {"kind": "tag"} and virtual.state()["selects"] == 0, told)

result = over()
check("without its authority the status is 7", result.returncode == UNPROVEN, result)
check("an unproven yes is no yes", "Over 18: unknown" in result.stdout, result.stdout)
check("one selection", virtual.state()["selects"] == 1, virtual.state())
while (told := await_card(True))["kind"] == "tag":
    pass
check("READER says that a phone lies there, and no more", told == {"kind": "mdoc"}, told)

with open(authority, "rb") as file:
    digest = hashlib.sha256(file.read()).hexdigest()
wrong = badgectl("mdoc", "anchors", "import", authority, "--signer", "00" * 32)
check("an authority with another SHA-256 is not imported", wrong.returncode == 1, wrong)
done = badgectl("mdoc", "anchors", "import", authority, "--signer", digest)
check("the authority is imported", done.returncode == 0, done)

for age, status, answer in ((18, YES, "yes"), (70, NO, "no")):
    tap_again(virtual)
    result = over(age)
    check(f"over {age}: {answer}", result.returncode == status and f"Over {age}: {answer}" in result.stdout, result)

tap_again(virtual)
result = badgectl("mdoc", "--item", "family_name,birth_date,portrait", "--reader", READER, "--portrait", f"{work}/face.jpg")
check("elements are shown", result.returncode == YES and "Eriksson" in result.stdout, result)
with open(f"{work}/face.jpg", "rb") as file:
    check("the picture is as the phone has it", file.read(3) == b"\xff\xd8\xff")

tap_again(virtual)
result = over(18, "--qr", "-", values=(virtual.state()["engagement"],))
check("the text of the QR code, and the answer over NFC", result.returncode == YES, result)
selects = virtual.state()["selects"]
check("a QR code needs no selection of the handover", selects == 4, selects)

virtual.remove()
await_card(False)
virtual = phone(consent="no")
await_card(True)
result = over()
check("a holder who declines: 9", result.returncode == DECLINED, result)
virtual.remove()
await_card(False)
virtual = phone(handover="negotiated", waits=3, longestWrite=40)
result = over()
check("a negotiated handover with a new issuer: 7", result.returncode == UNPROVEN, result)

virtual.remove()
await_card(False)
virtual = phone(quirks=["changedItem"])
result = over()
check("a changed value: 6", result.returncode == SUSPECT and "Over 18: unknown" in result.stdout, result)

log = daemon.log()
check("the log has nothing of a phone", not any(w in log for w in ("Eriksson", "18013", "age_over", "mdoc:")), log)
finish()

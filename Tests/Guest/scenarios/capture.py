# SPDX-License-Identifier: GPL-3.0-or-later
# A capture has every advertisement that the controller has sent, far above 200 a second, or says how many it lacks.
# kernel: time-travel=inf-cpu
# short
import os
import signal
import struct
import subprocess
import time

from guest import BIN, LIMIT, WORK, Badged, Controller, check, figure, finish, start_bluetoothd, start_bus

RATE, SECONDS = 1000, 5


def records(path):
    """The reports in a capture with one report in each record: the address and the number of drops before."""
    with open(path, "rb") as file:
        data = file.read()
    position, found = 16, []
    while position + 24 <= len(data):
        length, drops = struct.unpack_from(">I4xI", data, position + 4)
        found.append((data[position + 24 + 7:position + 24 + 13], drops))
        position += 24 + length
    return found


start_bus()
start_bluetoothd()
controller = Controller()
badged = Badged("mgmt", user="0", is_capable=True)
path = os.path.join(WORK, "capture.btsnoop")
program = subprocess.Popen([f"{BIN}/badgectl", "capture", "--raw", path, "--socket", badged.path], stderr=subprocess.PIPE)
end = time.monotonic() + LIMIT
while not controller.state()["scans"] and time.monotonic() < end:
    time.sleep(0.1)
controller.set(flood=RATE, addresses=500)
time.sleep(SECONDS)
sent = controller.set(flood=0)["sent"]
# What was sent is on its way for some milliseconds.
while len(records(path)) < sent and time.monotonic() < end and (before := len(records(path))) is not None:
    time.sleep(1)
    if len(records(path)) == before:
        break
program.send_signal(signal.SIGINT)
said = program.communicate(timeout=LIMIT)[1].decode()
found = records(path)
drops = found[-1][1] if found else 0
figure(f"capture of {RATE}/s for {SECONDS} s: sent, in the file, told as missing", f"{sent} {len(found)} {drops}")
check("the controller has sent nearly all", sent > RATE * SECONDS * 0.8, sent)
check("the file has every advertisement, or says how many it lacks", len(found) + drops >= sent * 0.99, (sent, len(found), drops))
check("a loss is told", (drops > 0) == ("missing" in said), said)
badged.end()
controller.unplug()
finish()

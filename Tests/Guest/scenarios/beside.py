# SPDX-License-Identifier: GPL-3.0-or-later
# Somebody else scans with the same adapter, and stops: badged goes on. And badged stops: the other goes on.
# short
import subprocess

from guest import Badged, Radio, check, finish, harness, seos, start_bluetoothd, start_bus

start_bus()
start_bluetoothd()
radio = Radio()
radio.tell(advertise=[seos(1)])


class Other:
    """bluetoothctl, which scans until it is told otherwise."""

    def __init__(self):
        self.process = subprocess.Popen(["bluetoothctl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        harness.children.append(self.process)

    def tell(self, command, answer):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.waits_for(answer)

    def waits_for(self, text):
        for line in self.process.stdout:
            if text in line:
                return True
        return False

    def end(self):
        self.process.kill()
        self.process.wait()


for backend in ("mgmt", "bluez"):
    other = Other()
    check("bluetoothctl scans", other.tell("scan on", "Discovery started"))
    badged = Badged(backend)
    client = badged.client()
    client.begin(updates=0)
    check(f"{backend}: a reader is heard while another program scans", client.hears(1), (client.scan, badged.log()))
    check("which stops", other.tell("scan off", "Discovery stopped"))
    # What was under way is past with the second one.
    check("and is heard on", client.hears(1) and client.hears(1) and client.says(None), (client.scan, badged.log()))
    check("bluetoothctl scans again", other.tell("scan on", "Discovery started"))
    check("heard", client.hears(1) and client.hears(1), (client.scan, badged.log()))
    client.ask("SCAN", cmd="STOP_SCAN")
    badged.end()
    check("badged has ended: the other program still hears", other.waits_for("RSSI"))
    other.end()
finish()

# SPDX-License-Identifier: GPL-3.0-or-later
# Another program scans with the same adapter and stops: badged still receives. When badged stops, the other program still
# receives.
# short
import subprocess
import time

from guest import BACKENDS, Controller, check, finish, harness, scan, seos, start_bluetoothd, start_bus, stop


class Bluetoothctl:
    def __init__(self):
        self.process = subprocess.Popen(["bluetoothctl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        harness.children.append(self.process)

    def scan(self, value, answer):
        """Says it again when bluetoothctl does not know the adapter yet."""
        while True:
            self.process.stdin.write(f"scan {value}\n")
            self.process.stdin.flush()
            for line in self.process.stdout:
                if answer in line:
                    return True
                if "No default controller" in line or "Failed to" in line:
                    break
            else:
                return False
            time.sleep(0.1)

    def wait_for(self, *texts):
        """Reads lines until one contains these texts; false when the program ends. run.sh ends a scenario that hangs."""
        return any(all(text in line for text in texts) for line in self.process.stdout)


start_bus()
start_bluetoothd()
controller = Controller(advertise=[seos(1)])
for backend, rssi in zip(BACKENDS, (-30, -60)):
    other = Bluetoothctl()
    check("bluetoothctl scans", other.scan("on", "Discovery started"))
    badged, client = scan(backend, updates=0)
    check("bluetoothctl stops its scan", other.scan("off", "Discovery stopped"))
    # Twice: the first advertisement may be from before the stop.
    check("the reader is still received", client.receives(1, times=2) and client.reports(None), client.detail())
    check("bluetoothctl scans again", other.scan("on", "Discovery started"))
    check("the reader is still received", client.receives(1, times=2), client.detail())
    client.ask("SCAN", cmd="STOP_SCAN")
    badged.end()
    # bluetoothd reports a strength only when it has changed.
    controller.set(advertise=[seos(1, rssi=rssi)])
    check("after the end of badged, bluetoothctl still receives", other.wait_for("RSSI", str(rssi)))
    stop(other.process)
finish()

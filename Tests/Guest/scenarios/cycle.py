# SPDX-License-Identifier: GPL-3.0-or-later
# The adapter is switched off against silence, and the controller takes its time for that; in this moment the scan ends, the
# client goes, or badged is ended. Afterwards the adapter is on.
# short
# kernel: time-travel
import time

from guest import LIMIT, Badged, Radio, btmgmt, check, finish, seos, start_bluetoothd, start_bus


def is_on():
    """What the kernel says of the adapter."""
    return any("powered" in line for line in btmgmt("info").splitlines() if "current settings" in line)


def stop(badged, client):
    client.send(cmd="STOP_SCAN")
    client.until(lambda m: m["msg"] == "SCAN" and not m["wanted"])


def go(badged, client):
    client.close()


def end(badged, client):
    code, seconds = badged.end()
    check("badged ends by itself, within ten seconds", code == 0 and seconds < 10, (code, seconds, badged.log()))


start_bus()
start_bluetoothd()
radio = Radio()
radio.tell(advertise=[seos(1)])
for backend in ("mgmt", "bluez"):
    for name, leave in (("STOP_SCAN", stop), ("the client goes", go), ("SIGTERM", end)):
        badged = Badged(backend)
        client = badged.client()
        client.begin()
        check(f"{backend}: a reader is heard", client.hears(1), (client.scan, badged.log()))
        resets = radio.tell(silent="reset", slow=0.5)["resets"]
        limit = time.monotonic() + LIMIT
        while "powerCycle" not in badged.log() and time.monotonic() < limit:
            client.fetch(0.01)
        # Switching on begins with a reset.
        check("the adapter is being switched off", radio.tell()["resets"] == resets and "powerCycle" in badged.log(), badged.log())
        leave(badged, client)
        while leave is not end and not is_on() and time.monotonic() < limit + LIMIT:
            pass
        check(f"{name} in the middle of that: the adapter is on", is_on(), (btmgmt("info"), badged.log()))
        check("because badged has switched it on again", radio.tell(slow=0, silent=None)["resets"] > resets)
        if leave is not end:
            badged.end()
finish()

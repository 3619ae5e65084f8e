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


def log_has(badged, step, watcher):
    """Waits until the ladder has got there. The guest's clock goes on only while somebody waits."""
    limit = time.monotonic() + LIMIT
    while f"recovery: {step}" not in badged.log() and time.monotonic() < limit:
        watcher.fetch(0.01)
    return f"recovery: {step}" in badged.log()


def is_switching(watcher):
    """Waits until the command has reached the controller: badged says what it is about to do, and then asks others to do it."""
    limit = time.monotonic() + LIMIT
    while not (busy := radio.tell()["isBusy"]) and time.monotonic() < limit:
        watcher.fetch(0.01)
    return busy


start_bus()
start_bluetoothd()
radio = Radio()
radio.tell(advertise=[seos(1)])
for backend, before in (("mgmt", "restart"), ("bluez", "reopen")):
    for name, leave in (("STOP_SCAN", stop), ("the client goes", go), ("SIGTERM", end)):
        badged = Badged(backend)
        client, watcher = badged.client(), badged.client()
        client.begin()
        check(f"{backend}: a reader is heard", client.hears(1), (client.scan, badged.log()))
        radio.tell(silent="reset")
        log_has(badged, before, watcher)
        resets = radio.tell(slow=0.5)["resets"]
        check("the adapter is being switched off and on", log_has(badged, "powerCycle", watcher) and is_switching(watcher),
              badged.log())
        leave(badged, client)
        limit = time.monotonic() + LIMIT
        while leave is not end and not (is_on() and not radio.tell()["isBusy"]) and time.monotonic() < limit:
            watcher.fetch(0.1)
        # Switching on begins with a reset.
        told = radio.tell(slow=0, silent=None)
        check(f"{name} in the middle of that: it has been off", told["resets"] > resets, (told, badged.log()))
        check("and is on", is_on(), (btmgmt("info"), badged.log()))
        if leave is not end:
            badged.end()
finish()

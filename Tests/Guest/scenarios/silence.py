# SPDX-License-Identifier: GPL-3.0-or-later
# The controller says that it scans, and tells of nothing any more. That is noticed and mended without a restart.
# short
# kernel: time-travel
import time

from guest import Badged, Radio, check, figure, finish, seos, start_bluetoothd, start_bus

start_bus()
start_bluetoothd()
radio = Radio()
radio.tell(advertise=[seos(1)])
for backend in ("mgmt", "bluez"):
    badged = Badged(backend)
    client = badged.client()
    client.begin()
    check(f"{backend}: a reader is heard", client.hears(1), (client.scan, badged.log()))
    # bluetoothd starts its discovery anew now and then, and so does badged: only a reset ends this for certain.
    radio.tell(silent="reset")
    start = time.monotonic()
    noticed = client.says("nothing is heard any more", 60)
    first = time.monotonic()
    check("the controller falls silent: that is said", noticed, (client.scan, badged.log()))
    check("and by GET_HEALTH, with advice", not client.health()["bluetoothScan"]["ok"])
    check("the scan is brought back to life", client.hears(1, 60), (client.scan, badged.log()))
    second = time.monotonic()
    check("and nothing is wrong any more", client.says(None), client.scan)
    figure(f"dead scan, {backend}: noticed after", f"{first - start:.1f} s", "30 s")
    figure(f"dead scan, {backend}: mended after another", f"{second - first:.1f} s", "20 s")
    # The guest's clock skips what nobody does, so that these seconds are not this machine's.
    check("in time", first - start < 30 and second - first < 20, (start, first, second))

    # A second adapter that hears nothing, while the first one does.
    second = Radio("--address", "00:AA:EE:00:00:02")
    second.tell(advertise=[seos(2)])
    check("a second adapter hears, too", client.hears(2), (client.scan, badged.log()))
    resets, others = second.tell()["resets"], radio.tell()["resets"]
    second.tell(silent="reset")
    start = time.monotonic()
    noticed = client.says(f"hci{second.index} hears nothing any more, though others do", 60)
    first = time.monotonic()
    check("one of two adapters falls silent: that is said", noticed, (client.scan, badged.log()))
    check("and by GET_HEALTH", f"hci{second.index}" in client.health()["bluetoothScan"].get("advice", ""))
    check("it is brought back to life", client.hears(2, 60), (client.scan, badged.log()))
    last = time.monotonic()
    check("and nothing is wrong any more", client.says(None), client.scan)
    check("by switching it off and on, not the other one", second.tell()["resets"] > resets and radio.tell()["resets"] == others)
    figure(f"one of two adapters dead, {backend}: noticed after", f"{first - start:.1f} s", "30 s")
    figure(f"one of two adapters dead, {backend}: mended after another", f"{last - first:.1f} s", "20 s")
    check("in time", first - start < 30 and last - first < 20, (start, first, last))
    second.unplug()
    badged.end()
finish()

# SPDX-License-Identifier: GPL-3.0-or-later
# Many controllers tell of each device once and swallow what it repeats, when the system asks them to. Then the strength of a
# reader would be known once in a scan: too little to say whether somebody comes or goes.
# short
import time

from guest import Badged, Radio, check, figure, finish, seos, start_bluetoothd, start_bus

start_bus()
start_bluetoothd()
SECONDS = 12
for backend in ("mgmt", "bluez"):
    radio = Radio("--filters")
    radio.tell(advertise=[seos(1, rssi=[-60, 4], every=100)])
    badged = Badged(backend)
    client = badged.client()
    client.begin(updates=0)
    check(f"{backend}: a reader is heard", client.hears(1), (client.scan, badged.log()))
    values, end = 0, time.monotonic() + SECONDS
    while (left := end - time.monotonic()) > 0:
        values += client.until(lambda m: m["msg"] == "DOOR_READER", left) is not None
    figure(f"filtering controller, {backend}: values of a reader that sends 9.5 a second", f"{values / SECONDS:.1f} /s")
    if backend == "mgmt":
        check("and its strength is followed all the time", values / SECONDS > 4, values)
    badged.end()
    radio.unplug()
finish()

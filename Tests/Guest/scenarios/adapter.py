# SPDX-License-Identifier: GPL-3.0-or-later
# An adapter comes, is pulled, and comes again: the scan waits for it, and says so meanwhile.
# short
from guest import Badged, Radio, check, finish, seos, start_bluetoothd, start_bus

start_bus()
start_bluetoothd()
for backend in ("mgmt", "bluez"):
    badged = Badged(backend)
    client = badged.client()
    client.begin()
    check(f"{backend}: without an adapter the scan says so", client.says("there is no Bluetooth adapter"), client.scan)
    health = client.health()
    check("and so does GET_HEALTH, with advice",
          not health["bluetoothAdapter"]["ok"] and health["bluetoothAdapter"]["advice"] == "plug one in", health)
    for time in ("first", "second", "third"):
        radio = Radio()
        radio.tell(advertise=[seos(1)])
        check(f"plugged in for the {time} time: a reader is heard", client.hears(1), (client.scan, badged.log()))
        check("and nothing is wrong", client.says(None), client.scan)
        radio.unplug()
        check("unplugged: that is said", client.says("there is no Bluetooth adapter"), client.scan)
    badged.end()
finish()

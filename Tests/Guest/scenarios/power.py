# SPDX-License-Identifier: GPL-3.0-or-later
# The adapter is switched off, and blocked by rfkill: that is said, with advice, and the scan goes on when it is over.
# short
from guest import Badged, Radio, btmgmt, check, finish, run, seos, start_bluetoothd, start_bus

start_bus()
start_bluetoothd()
radio = Radio()
radio.tell(advertise=[seos(1)])
for backend in ("mgmt", "bluez"):
    badged = Badged(backend)
    client = badged.client()
    client.begin()
    check(f"{backend}: a reader is heard", client.hears(1), (client.scan, badged.log()))
    said = btmgmt("power", "off")
    check("btmgmt power off: that is said, with advice", client.says("switched off: bluetoothctl power on"), (client.scan, said))
    said = btmgmt("power", "on")
    check("and on: nothing is wrong", client.says(None), (client.scan, said))
    check("and the reader is heard", client.hears(1), client.scan)
    said = run("rfkill", "block", "bluetooth")
    check("rfkill block: that is said, with advice", client.says("rfkill unblock bluetooth"), (client.scan, said, badged.log()))
    health = client.health()
    check("and by GET_HEALTH, too", health["bluetoothAdapter"].get("advice") == "rfkill unblock bluetooth", health)
    run("rfkill", "unblock", "bluetooth")
    check("unblocked: nothing is wrong", client.says(None), (client.scan, badged.log()))
    check("and the reader is heard", client.hears(1), client.scan)
    badged.end()
finish()

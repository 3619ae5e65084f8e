# SPDX-License-Identifier: GPL-3.0-or-later
# bluetoothd ends, is killed, and comes again, and so does the D-Bus: a scan through them waits, one through the kernel goes on.
# short
import os

from guest import Badged, Radio, check, finish, seos, start_bluetoothd, start_bus

bus = start_bus()
radio = Radio()
radio.tell(advertise=[seos(1)])
for backend in ("mgmt", "bluez"):
    service = start_bluetoothd()
    badged = Badged(backend)
    client = badged.client()
    client.begin()
    check(f"{backend}: a reader is heard", client.hears(1), (client.scan, badged.log()))
    for name, signal in (("SIGTERM", 15), ("SIGKILL", 9)):
        service.send_signal(signal)
        service.wait()
        if backend == "bluez":
            check(f"bluetoothd got {name}: the scan says that it is gone", client.says("bluetoothd has ended"), client.scan)
            check("and GET_HEALTH, too", not client.health()["bluetooth"]["ok"])
        service = start_bluetoothd()
        if backend == "bluez":
            check("it is back: nothing is wrong", client.says(None), client.scan)
        # Two: the first news may have been under way when it ended.
        check(f"after {name} and a new start a reader is heard", client.hears(1) and client.hears(1), (client.scan, badged.log()))
    if backend == "mgmt":
        service.kill()
        service.wait()
        check("without bluetoothd, too", client.hears(1) and client.hears(1), (client.scan, badged.log()))
    else:
        os.kill(bus, 9)
        service.wait()
        check("the D-Bus is killed: that is said", client.says("D-Bus"), client.scan)
        bus = start_bus()
        service = start_bluetoothd()
        check("it is back: nothing is wrong", client.says(None), (client.scan, badged.log()))
        check("and a reader is heard", client.hears(1), client.scan)
    badged.end()
    service.kill()
    service.wait()
finish()

# SPDX-License-Identifier: GPL-3.0-or-later
# Many controllers tell of each device once and swallow what it repeats, when the system asks them to. Then the strength of a
# reader would be known once in ten seconds: too little to say whether somebody comes or goes. A monitor of advertisements keeps
# the system from asking: that of badged in the kernel, or, where bluetoothd takes monitors (5.66: with -E), that in bluetoothd.
# short
# kernel: time-travel
import time

from guest import Badged, Radio, check, figure, finish, seos, start_bluetoothd, start_bus

start_bus()
SECONDS = 12
for backend, options in (("mgmt", []), ("bluez", ["-E"]), ("bluez", [])):
    bluetoothd = start_bluetoothd(*options)
    radio = Radio("--filters")
    radio.tell(advertise=[seos(1, rssi=[-60, 4], every=100)])
    badged = Badged(backend)
    client = badged.client()
    client.begin(updates=0)
    name = backend + " with monitors" * bool(options)
    check(f"{name}: a reader is heard", client.hears(1), (client.scan, badged.log()))
    # The first discovery may have begun before the monitor was in force.
    client.count("DOOR_READER", 3)
    rate = client.count("DOOR_READER", SECONDS) / SECONDS
    figure(f"filtering controller, {name}: values of a reader that sends 9.5 a second", f"{rate:.1f} /s")
    if backend == "mgmt" or options:
        check("and its strength is followed all the time", rate > 4, rate)
    check("bluetoothd lives", bluetoothd.poll() is None, bluetoothd.poll())
    badged.end()
    radio.unplug()
    bluetoothd.kill()
    bluetoothd.wait()
finish()

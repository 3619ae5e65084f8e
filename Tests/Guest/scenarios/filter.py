# SPDX-License-Identifier: GPL-3.0-or-later
# Many controllers report each device once and drop repeated advertisements, when the system asks them to. Then badged gets a
# signal strength every ten seconds only. A monitor of advertisements keeps the system from asking: a monitor in the kernel, or
# one in bluetoothd, where bluetoothd supports it (5.66: with option -E).
# short
# kernel: time-travel=inf-cpu
from guest import Controller, check, figure, finish, scan, seos, start_bluetoothd, start_bus, stop

start_bus()
SECONDS = 12
for backend, options in (("mgmt", []), ("bluez", ["-E"]), ("bluez", [])):
    bluetoothd = start_bluetoothd(*options)
    controller = Controller("--filters", advertise=[seos(1, rssi=[-60, 4], every=100)])
    name = f"{backend} with monitors" if options else backend
    badged, client = scan(backend, name, updates=0)
    # The first discovery may begin before the monitor is active.
    client.count("DOOR_READER", 3)
    rate = client.count("DOOR_READER", SECONDS) / SECONDS
    figure(f"filtering controller, {name}: values of a reader that sends 9.5 a second", f"{rate:.1f} /s")
    if backend == "mgmt" or options:
        check("the signal strength is updated all the time", rate > 4, rate)
    check("bluetoothd runs", bluetoothd.poll() is None, bluetoothd.poll())
    badged.end()
    controller.unplug()
    stop(bluetoothd)
finish()

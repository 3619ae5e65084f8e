# SPDX-License-Identifier: GPL-3.0-or-later
# bluetoothd ends, is killed and starts again, and so does the D-Bus. A scan through bluetoothd waits; a scan through the kernel
# continues.
# short
# kernel: time-travel=inf-cpu
import os

from guest import BACKENDS, Controller, check, finish, scan, seos, start_bluetoothd, start_bus, stop

bus = start_bus()
controller = Controller(advertise=[seos(1)])
for backend in BACKENDS:
    service = start_bluetoothd()
    badged, client = scan(backend)
    for name, signal in (("SIGTERM", 15), ("SIGKILL", 9)):
        service.send_signal(signal)
        service.wait()
        if backend == "bluez":
            check(f"bluetoothd gets {name}: SCAN has an error", client.reports("bluetoothd has ended"), client.scan)
            check("GET_HEALTH has the fault", not client.health()["bluetooth"]["ok"])
        service = start_bluetoothd()
        if backend == "bluez":
            check("bluetoothd starts: the error is gone", client.reports(None), client.scan)
        # Twice: the first message may be from before the end.
        check(f"after {name} and a new start a reader is received", client.receives(1, times=2), client.detail())
    if backend == "mgmt":
        stop(service)
        check("without bluetoothd a reader is received", client.receives(1, times=2), client.detail())
    else:
        os.kill(bus, 9)
        service.wait()
        check("the D-Bus is killed: SCAN has an error", client.reports("D-Bus"), client.scan)
        bus = start_bus()
        service = start_bluetoothd()
        check("D-Bus and bluetoothd start: the error is gone", client.reports(None), client.detail())
        check("a reader is received", client.receives(1), client.scan)
    badged.end()
    stop(service)
finish()

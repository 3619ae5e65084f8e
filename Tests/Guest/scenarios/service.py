# SPDX-License-Identifier: GPL-3.0-or-later
# bluetoothd ends, is killed and starts again, then hangs and goes on; the D-Bus ends, too. A scan through bluetoothd waits; a
# scan through the kernel continues.
# short
# kernel: time-travel=inf-cpu
import os
import signal
import time

from guest import BACKENDS, Controller, check, finish, scan, seos, start_bluetoothd, start_bus, stop

bus = start_bus()
controller = Controller(advertise=[seos(1)])
for backend in BACKENDS:
    service = start_bluetoothd()
    badged, client = scan(backend)
    for name, number in (("SIGTERM", signal.SIGTERM), ("SIGKILL", signal.SIGKILL)):
        service.send_signal(number)
        service.wait()
        if backend == "bluez":
            check(f"bluetoothd gets {name}: SCAN has an error", client.reports("bluetoothd has ended"), client.scan)
            check("GET_HEALTH has the fault", not client.health()["bluetooth"]["ok"])
        begun = time.monotonic()
        service = start_bluetoothd()
        if backend == "bluez":
            check("bluetoothd starts: the error is gone", client.reports(None), client.scan)
        # Twice: the first message may be from before the end.
        check(f"after {name} and a new start a reader is received", client.receives(1, times=2), client.detail())
        # The kernel goes on for 10.24 s with the discovery of a bluetoothd that was killed, and starts no other one.
        check("in time, and no refusal is reported", time.monotonic() - begun < 13 and "refuses to scan" not in badged.log(),
              badged.log())
    # Longer than bluetoothd may take to answer, and than all steps of recovery.
    service.send_signal(signal.SIGSTOP)
    client.count("DOOR_READER", 60)
    service.send_signal(signal.SIGCONT)
    check("after a hang of bluetoothd a reader is received", client.receives(1, times=2), client.detail())
    check("the error is gone", "error" not in client.state(), client.detail())
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

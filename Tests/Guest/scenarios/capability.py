# SPDX-License-Identifier: GPL-3.0-or-later
# badged as its unit starts it: as user badged, with CAP_NET_ADMIN in the ambient set. badged opens the kernel's management socket,
# gives up the capability, and scans with the socket. Without the capability, or with backend = bluez, it scans through bluetoothd.
# short
# kernel: time-travel=inf-cpu
import os

from guest import Badged, Controller, check, finish, make_user, scan, seos, start_bluetoothd, start_bus, status_field

start_bus()
start_bluetoothd()
make_user()
controller = Controller(advertise=[seos(1)])
badged = Badged("auto", user="badged", is_capable=True)
check("badged runs as its user", status_field(badged.pid, "Uid").split()[0] != "0")
held = {name: status_field(badged.pid, name) for name in ("CapEff", "CapPrm", "CapAmb")}
check("badged has no capability", all(int(value, 16) == 0 for value in held.values()), held)
for task in os.listdir(f"/proc/{badged.pid}/task"):
    values = [status_field(task, name) for name in ("CapEff", "CapPrm")]
    check("a thread of badged has no capability", all(int(value, 16) == 0 for value in values), values)
_, client = scan("auto", badged=badged)
check("the scan uses the management socket", client.reports(None) and client.scan["backend"] == "mgmt", client.detail())
check("there is no warning in the log", "CAP_NET_ADMIN" not in badged.log(), badged.log())
code, _ = badged.end()
check("badged ends with exit code 0", code == 0, code)
for backend, is_capable in (("auto", False), ("bluez", True)):
    badged = Badged(backend, user="badged", is_capable=is_capable)
    _, client = scan(backend, f"backend {backend}, {'with' if is_capable else 'without'} the capability", badged=badged)
    check("the scan uses bluetoothd", client.reports(None) and client.scan["backend"] == "bluez", client.detail())
    badged.end()
finish()

# SPDX-License-Identifier: GPL-3.0-or-later
# badged as its unit starts it: as user badged, with CAP_NET_ADMIN ambient. It opens the kernel's management socket, gives the
# capability up, and scans with the socket that it has kept. Without the capability, or where that is configured, it scans
# through bluetoothd.
# short
import os
import subprocess

from guest import HERE, Badged, Radio, check, finish, seos, start_bluetoothd, start_bus

ROOT = os.path.dirname(os.path.dirname(HERE))


def field(pid, name):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(line.split(":", 1)[1].strip() for line in file if line.startswith(name + ":"))


start_bus()
start_bluetoothd()
subprocess.run(["systemd-sysusers", f"{ROOT}/systemd/badged-sysusers.conf"], check=True)
radio = Radio()
radio.tell(advertise=[seos(1)])
badged = Badged("auto", user="badged", is_capable=True)
check("badged runs as its user", field(badged.pid, "Uid").split()[0] != "0", field(badged.pid, "Uid"))
held = {name: field(badged.pid, name) for name in ("CapEff", "CapPrm", "CapAmb")}
check("it has no capability any more", all(int(value, 16) == 0 for value in held.values()), held)
for task in os.listdir(f"/proc/{badged.pid}/task"):
    check("nor has any of its threads", int(field(task, "CapEff"), 16) == int(field(task, "CapPrm"), 16) == 0)
client = badged.client()
scan = client.begin()
check("it scans through the management socket", client.says(None) and client.scan["backend"] == "mgmt", (scan, badged.log()))
check("and hears", client.hears(1), (client.scan, badged.log()))
check("no warning", "CAP_NET_ADMIN" not in badged.log(), badged.log())
code, _ = badged.end()
check("it ends as it should", code == 0, code)
for backend, is_capable in (("auto", False), ("bluez", True)):
    badged = Badged(backend, user="badged", is_capable=is_capable)
    client = badged.client()
    client.begin()
    case = f"backend {backend}, {'with' if is_capable else 'without'} the capability"
    check(f"{case}: it scans through bluetoothd", client.says(None) and client.scan["backend"] == "bluez", (client.scan, badged.log()))
    check("and hears", client.hears(1), (client.scan, badged.log()))
    badged.end()
finish()

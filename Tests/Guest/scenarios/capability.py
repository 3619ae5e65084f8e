# SPDX-License-Identifier: GPL-3.0-or-later
# badged as its unit starts it: as user badged, without a capability, and with the kernel's
# management socket. badged-bluetooth has opened this socket as root and stored it at systemd, which
# the scenario simulates. A badged that has CAP_NET_ADMIN opens the socket itself and gives up the
# capability. Without both, or with backend = bluez, badged scans through bluetoothd.
# short
# kernel: time-travel=inf-cpu
import os
import socket
import subprocess

from guest import BIN, LIMIT, WORK, Badged, Controller, check, finish, make_user, scan, seos, start_bluetoothd, start_bus, status_field
from harness import Manager

start_bus()
start_bluetoothd()
make_user()
controller = Controller(advertise=[seos(1)])


def store(*prefix):
    """Runs badged-bluetooth, and returns its exit code, what it sends to systemd, and the descriptors."""
    manager = Manager(os.path.join(WORK, "manager"))
    code = subprocess.run([*prefix, f"{BIN}/badged-bluetooth"], env={"NOTIFY_SOCKET": manager.address}, timeout=LIMIT,
                          check=False).returncode
    manager.socket.setblocking(False)
    try:
        text, descriptors, _, _ = socket.recv_fds(manager.socket, 4096, 8)
    except BlockingIOError:
        text, descriptors = b"", []
    manager.close()
    return code, text.decode().split(), descriptors


code, text, descriptors = store()
check("badged-bluetooth stores one socket", (code, text, len(descriptors)) == (0, ["FDSTORE=1", "FDNAME=bluetooth"], 1),
      (code, text, descriptors))
badged = Badged("auto", user="badged", management=descriptors[0])
os.close(descriptors[0])
removal = {"FDSTOREREMOVE": "1", "FDNAME": "bluetooth"}
check("badged takes the socket out of the store", removal in badged.manager.messages, badged.manager.messages)
held = {name: status_field(badged.pid, name) for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")}
check("badged has no capability and can get none", all(int(value, 16) == 0 for value in held.values()), held)
_, client = scan("auto", "with the stored socket", badged=badged)
check("the scan uses the management socket", client.reports(None) and client.scan["backend"] == "mgmt", client.detail())
code, _ = badged.end()
check("badged ends with exit code 0", code == 0, code)
with socket.socket() as wrong:
    badged = Badged("auto", user="badged", management=wrong.fileno())
check("another descriptor is refused with a warning", "is not a Bluetooth socket" in badged.log(), badged.log())
_, client = scan("auto", "with a wrong descriptor", badged=badged)
check("the scan uses bluetoothd", client.reports(None) and client.scan["backend"] == "bluez", client.detail())
badged.end()
code, text, descriptors = store("setpriv", "--reuid=nobody", "--bounding-set=-all", "--inh-caps=-all")
check("without the capability badged-bluetooth stores nothing, and does not keep badged from starting",
      (code, text, descriptors) == (0, [], []), (code, text, descriptors))

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

# SPDX-License-Identifier: GPL-3.0-or-later
# Recovery switches the adapter off, and the controller takes half a second for it. Meanwhile the scan ends, the client
# disconnects, or badged is ended. Afterwards the adapter is switched on.
# short
# kernel: time-travel=inf-cpu
from guest import Controller, check, finish, is_powered, keep_bluetoothd_running, scan, seos, start_bus


def stop_scan(badged, client):
    client.send(cmd="STOP_SCAN")
    client.until(lambda m: m["msg"] == "SCAN" and not m["wanted"])


def disconnect(badged, client):
    client.close()


def terminate(badged, client):
    code, seconds = badged.end()
    check("badged ends with exit code 0 within ten seconds", code == 0 and seconds < 10, (code, seconds, badged.log()))


start_bus()
# bluetoothd 5.66 sometimes crashes when a client disconnects while the adapter is being switched off.
keep_bluetoothd_running()
controller = Controller(advertise=[seos(1)])
# The last step before the power cycle; the backend mgmt has no step "reopen".
for backend, step in (("mgmt", "restart"), ("bluez", "reopen")):
    for name, leave in (("STOP_SCAN", stop_scan), ("the client disconnects", disconnect), ("SIGTERM", terminate)):
        badged, client = scan(backend, f"{backend}, {name}")
        watcher = badged.client()
        controller.set(silent="reset")
        check("recovery begins", watcher.wait_until(lambda: f"recovery: {step}" in badged.log()), badged.log())
        resets = controller.set(slow=0.5)["resets"]
        check("recovery switches the adapter off",
              watcher.wait_until(lambda: "recovery: powerCycle" in badged.log())
              and watcher.wait_until(lambda: controller.state()["isBusy"]), badged.log())
        leave(badged, client)
        if leave is not terminate:
            watcher.wait_until(lambda: is_powered() and not controller.state()["isBusy"])
        # A controller is reset when it is switched on.
        state = controller.set(slow=0, silent=None)
        check("the adapter was off", state["resets"] > resets, (state, badged.log()))
        check("the adapter is on", is_powered(), badged.log())
        if leave is not terminate:
            badged.end()
finish()

# SPDX-License-Identifier: GPL-3.0-or-later
# The controller reports that it scans, but sends no advertisements any more. badged detects this and recovers the scan.
# short
# kernel: time-travel=inf-cpu
import itertools
import time

from guest import BACKENDS, Badged, Controller, check, figure, finish, scan, seos, start_bluetoothd, start_bus


def recovers(case, client, controller, number, error, advice):
    """Makes a controller silent and checks that badged reports and ends the silence in time. The times are those of the guest's
    clock, which does not depend on the speed of the host."""
    # Only a reset ends the silence: bluetoothd and badged restart the scan now and then without a reset.
    resets = controller.set(silent="reset")["resets"]
    start = time.monotonic()
    detected = client.reports(error)
    middle = time.monotonic()
    check(f"{case} is silent: SCAN has an error", detected, client.detail())
    check("GET_HEALTH has advice", advice in client.health()["bluetoothScan"].get("advice", ""))
    check("the scan recovers", client.receives(number), client.detail())
    end = time.monotonic()
    check("the error is gone", client.reports(None), client.scan)
    check("the adapter was switched off and on", controller.state()["resets"] > resets)
    figure(f"{case} silent: detected after", f"{middle - start:.1f} s", "30 s")
    figure(f"{case} silent: recovered after another", f"{end - middle:.1f} s", "20 s")
    check("in time", middle - start < 30 and end - middle < 20, (start, middle, end))


start_bus()
start_bluetoothd()
controller = Controller(advertise=[seos(1)])
for backend, mode in itertools.product(BACKENDS, ("performance", "powerSaving")):
    case = f"{backend}, {mode}"
    badged, client = scan(backend, mode=mode)
    # All advertisements of the reader are the same, and have the same strength.
    resets = controller.state()["resets"]
    shown = []
    client.until(lambda m: m["msg"] == "SCAN" and shown.append(m["radio"]), 60)
    state = client.state()
    check(f"{case}: advertisements that never change are not silence", state["lastAdvertAgo"] < 10_000 and "error" not in state
          and controller.state()["resets"] == resets and "receives nothing" not in badged.log(), (state, badged.log()))
    check("the radio listens all the time, for clients", False not in shown, shown)
    recovers(f"{case}, only adapter", client, controller, 1, "no advertisements are received", "no advertisement was received")
    second = Controller("--address", "00:AA:EE:00:00:02", advertise=[seos(2)])
    check("a second adapter receives", client.receives(2), client.detail())
    resets = controller.state()["resets"]
    name = f"hci{second.index}"
    recovers(f"{case}, one of two adapters", client, second, 2, f"received by {name}", name)
    check("the other adapter was not switched off", controller.state()["resets"] == resets)
    second.unplug()
    badged.end()
    controller.set(silent="restart")
    badged = Badged(backend)
    client = badged.client()
    start = time.monotonic()
    client.begin(mode)
    controller.set(silent="never")
    detected = client.reports("no advertisements are received")
    check(f"{case}, silent from the beginning: SCAN has an error in time", detected and time.monotonic() - start < 30,
          client.detail())
    badged.end()
    controller.set(silent=None)
finish()

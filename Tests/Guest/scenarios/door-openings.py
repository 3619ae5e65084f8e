# SPDX-License-Identifier: GPL-3.0-or-later
# Openings in a row, of a reader that bluetoothd does not know, while badged scans: with each
# bluetoothd, with both backends, and for readers that advertise often and seldom. With mgmt, the
# kernel connects by itself; with bluez, bluetoothd has to find the reader first, unless it runs with
# option -E. Of three advertisements that this takes, each is an interval after the one before: the
# first makes the reader known to bluetoothd, the kernel connects at the third. Usually bluetoothd
# knows the reader, because badged's own scan has found it; this is measured, too.
# bluetoothd
# kernel: time-travel=inf-cpu
import random

from doors import DoorBadged, Radio, Site
from guest import BLUETOOTHDS, check, figure, finish, percentile, run, start_bluetoothd, start_bus, stop
from reader import point

OPENINGS = 25
ADAPTER, DEVICE = "/org/bluez/hci0", "/org/bluez/hci0/dev_00_AA_EE_00_00_02"
# The interval of the advertisements in milliseconds, and the longest median of an opening in seconds.
GOALS = {"mgmt": ((100, 2.0), (1000, 3.0)), "bluez": ((100, 2.0), (1000, 4.5), (1000, 3.0, "known")),
         "bluez, -E": ((100, 2.0), (1000, 3.0))}


def ask_bluetoothd(path, method, *arguments):
    """Whether bluetoothd has answered the call without an error."""
    return run("dbus-send", "--system", "--print-reply", "--dest=org.bluez", path, method, *arguments).returncode == 0


start_bus()
for bluetoothd in BLUETOOTHDS:
    for setting in GOALS:
        backend, *options = setting.split(", ")
        service = start_bluetoothd(*options, program=bluetoothd)
        version = " ".join([run(bluetoothd, "--version").stdout.strip(), *options])
        radio = Radio("--paced")
        site = Site()
        reader = site.reader(radio, 1, "front")
        badged = DoorBadged(backend, site)
        client = badged.client()
        client.enrol(site, siteKey=point(site.key).hex())
        for every, goal, *known in GOALS[setting]:
            reader.advertise(every)
            client.begin("powerSaving")
            door = client.find("front")
            results = []
            for _ in range(OPENINGS):
                client.sees(door)
                client.wait_until_cool(door)
                # People open a door at any time between two advertisements.
                client.count("DOOR_READER", random.random() * every / 1000)
                if not known:
                    ask_bluetoothd(ADAPTER, "org.bluez.Adapter1.RemoveDevice", f"objpath:{DEVICE}")
                # After the last opening badged has let bluetoothd forget the reader.
                while known and not ask_bluetoothd(DEVICE, "org.freedesktop.DBus.Properties.GetAll", "string:org.bluez.Device1"):
                    client.sees(door)
                results.append(client.open_now(door))
                reader.wait_for_end()
            case = f"bluetoothd {version}, {backend}, a {' '.join([*known, 'reader'])} that advertises every {every} ms"
            failed = [(result["status"], result["reason"]) for result in results if result["status"] != "success"]
            check(f"{case}: {OPENINGS} openings succeed", not failed, (len(failed), failed[:3], badged.log()[-1500:]))
            median = percentile([result["durationMs"] / 1000 for result in results], 0.5)
            check("in time", median <= goal, median)
            figure(f"PKOC opening, {case}: p50", f"{median:.2f} s", f"{goal} s")
        badged.end()
        radio.unplug()
        stop(service)
finish()

# SPDX-License-Identifier: GPL-3.0-or-later
"""AusweisApp2 uses the reader that badged lends, and badged pairs with AusweisApp2 as the phone. Started by run.sh.

AusweisApp2 is on the host of this script, badged on the other one, with a cable in between. Pairings are those of
AusweisApp2's own code; only its windows are replaced (user_interface.py).
"""

import re
import socket
import sys

import user_interface
from cards import READER, Card, stop
from harness import LIMIT, Client, check, finish, until
from hosts import ON_OTHER, Host, connect_hosts, cut, mend
from programs import PIN, EIDServer, launch_peer, start_peer

NEW = "246802"
# Without this AusweisApp2 would use the reader through pcscd.
NO_PCSC = {"PCSCLITE_CSOCK_NAME": "/nonexistent"}

HEAD = """import QtQuick 2.15
import QtQuick.Controls 2.15
import Governikus.Type.ReaderPlugIn 1.0
import Governikus.Type.ReaderScanEnabler 1.0
import Governikus.Type.RemoteServiceModel 1.0
"""
# Pairs with the first device that is announced, as the view of the settings does.
PAIR = HEAD + """
ApplicationWindow {
    visible: true
    ReaderScanEnabler { plugInType: ReaderPlugIn.REMOTE_IFD }
    Repeater {
        model: RemoteServiceModel.availableRemoteDevices
        delegate: Item {
            Component.onCompleted: {
                if (RemoteServiceModel.rememberServer(deviceId)) RemoteServiceModel.connectToRememberedServer("CODE");
            }
        }
    }
}
"""
# Lends the readers of this host, and pairs, as the view of a phone does.
LEND = HEAD + """
ApplicationWindow {
    visible: true
    Component.onCompleted: RemoteServiceModel.setRunning(true, true)
    Connections {
        target: RemoteServiceModel
        function onFireCurrentStateChanged() {
            if (RemoteServiceModel.currentState !== "Initial") RemoteServiceModel.continueWorkflow();
        }
        function onFirePskChanged() { console.warn("pairing code " + RemoteServiceModel.psk + "."); }
    }
}
"""


def start_window(folder, qml):
    """Starts AusweisApp2 with our main.qml, without a screen."""
    user_interface.install(f"{folder}/home", qml)
    # The cache of compiled files does not notice that main.qml is another one.
    return launch_peer(folder, user_interface=(), environment={**NO_PCSC, "QT_QUICK_BACKEND": "software",
                                                              "QML_DISABLE_DISK_CACHE": "1"})


def shown_code(path):
    """The four digits that our main.qml has written to the log; None before."""
    with open(path, encoding="utf-8", errors="replace") as log:
        found = re.search(r"pairing code (\d{4})\.", log.read())
    return found and found[1]


def wait_for_reader(peer, present):
    """Waits until AusweisApp2 has reported the reader with a card, or has lost it."""
    while peer.reader is None or bool(peer.reader.get("card")) != present:
        peer.next()


def main():
    binaries, folder = sys.argv[1:3]
    connect_hosts()
    server = EIDServer(f"{binaries}/badged-eidserver", folder)
    card = Card(f"{binaries}/badged-virtual-card", folder, {})
    phone = Host(binaries, folder, "phone", f"[remote]\nshare=yes\nreaders={READER}\nname=phone\n", ON_OTHER)

    print("AusweisApp2 pairs with badged", flush=True)
    sharing, code = phone.open_pairing()
    window = start_window(folder, PAIR.replace("CODE", code))
    said, _ = sharing.communicate(timeout=LIMIT)
    check("badged is paired", sharing.returncode == 0 and "Paired with" in said, said)
    stop(window)

    print("AusweisApp2 uses the reader of badged", flush=True)
    peer = start_peer(folder, roots=server.roots, environment=NO_PCSC)
    wait_for_reader(peer, True)
    asked, last = peer.change_pin(["000000", PIN], NEW)
    check("a PIN change succeeds after a wrong PIN",
          asked == [("ENTER_PIN", 3), ("ENTER_PIN", 2), ("ENTER_NEW_PIN", 3)] and last.get("success") is True, (asked, last))
    check("the card has three tries", card.state()["retryCounter"] == 3, card.state())
    last = peer.authenticate(server.url({}), {"ENTER_PIN": NEW})
    report = server.report()
    check("an authentication succeeds", last.get("result", {}).get("major", "").endswith("#ok"), last)
    check("the server has read a genuine card", report["outcome"] == "ok" and report["card"]["passiveAuthentication"],
          report)
    check("badged says who uses the card", phone.state()["borrowers"][0]["connected"], phone.state())
    cut()
    wait_for_reader(peer, False)
    check("a cut cable costs no try", card.state()["retryCounter"] == 3, card.state())
    mend()
    wait_for_reader(peer, True)
    asked, last = peer.change_pin(NEW, PIN)
    check("the reader is back with the cable", last.get("success") is True, (asked, last))
    fingerprint = phone.state()["borrowers"][0]["fingerprint"]
    code, written = phone.run("remote", "forget", fingerprint, "--yes")
    check("badged forgets AusweisApp2", code == 0, written)
    wait_for_reader(peer, False)
    peer.stop()
    phone.daemon.end()

    print("badged pairs with AusweisApp2 as the phone", flush=True)
    desk = Host(binaries, folder, "desk", "[pcsc]\nenabled=no\n[remote]\nenabled=yes\nname=desk\n", ON_OTHER)
    # The client keeps badged listening and connected.
    client = Client(desk.path)
    window = start_window(folder, LEND)
    # AusweisApp2 1.26.2 does not announce that it pairs, so badgectl needs its name, which is that of this host.
    code = until(lambda: shown_code(f"{folder}/peer.log"))
    exit_code, said = desk.run("remote", "pair", socket.gethostname(), "--pin-stdin", typed=f"{code}\n")
    check("badged is paired", exit_code == 0 and "Paired with" in said, said)
    state = client.ask("REMOTE", cmd="GET_REMOTE")
    while not any(device["connected"] for device in state["lenders"]):
        state = client.wait_for("REMOTE")
    check("badged is connected to AusweisApp2", state["lenders"][0]["paired"], state)
    client.close()
    stop(window)
    desk.daemon.end()
    card.remove()
    server.stop()
    finish()


main()

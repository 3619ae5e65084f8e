# SPDX-License-Identifier: GPL-3.0-or-later
# Faults of PKOC readers, over real connections: wrong proofs and certificates, replayed and garbled
# notifications, ends of the connection, small packets, and readers without encryption. Other
# programs at the reader, and two readers of one name.
# kernel: time-travel=inf-cpu
import os
import time

from doors import DoorBadged, Radio, Site
from guest import BACKENDS, check, finish, run, start_bluetoothd, start_bus, stop
from plainclient import PlainClient
from reader import DEVICE_KEY, ENCRYPTED, PUBLIC_KEY, certificate, point, revocations

DEVICE = "/org/bluez/hci0/dev_00_AA_EE_00_00_02"
# What a reader may receive at most: nothing, an ephemeral key, or the sealed credential.
NOTHING, EPHEMERAL, SEALED = [], [DEVICE_KEY], [DEVICE_KEY, ENCRYPTED]


def run_faults(backend):
    bluetoothd = start_bluetoothd()
    radio = Radio("--paced", "--controllers", "3")
    # The readers of the old site do not support encryption.
    site, old = Site(), Site()
    reader = site.reader(radio, 1, "front")
    badged = DoorBadged(backend, site)
    client = badged.client()
    revoked = os.urandom(16)
    key = client.enrol(site, old.trusted(legacy=True), siteKey=point(site.key).hex(), issuerKey=point(site.issuer).hex(),
                       revocations=revocations(site.issuer, site.identifier, revoked).hex())
    client.begin()
    door = client.find("front")

    def meets(what, status, learned, granted=False):
        """Tries to open the reader, and compares the result and what the reader has received."""
        visits = len(reader.visitors)
        before = len(reader.connections)
        result = client.open(door)
        reader.wait_for_end()
        check(f"{backend}: {what}", result["status"] == status and (result["accessDecision"] == "granted") == granted,
              (result, badged.log()))
        check(f"the reader hears {['nothing', 'an ephemeral key', 'the sealed credential'][len(learned)]}",
              len(reader.connections) == before + 1 and reader.learned() == learned
              and len(reader.visitors) - visits == (ENCRYPTED in learned)
              and key[1:33] not in b"".join(reader.connections[-1].messages), reader.learned())
        check("the reader is disconnected", client.wait_until(lambda: radio.set()["links"] == 0), radio.set())

    meets("a reader with the key of the site", "success", SEALED, True)
    opened = f"/proc/{badged.pid}/fd"
    descriptors = len(os.listdir(opened))
    for fault, status, learned in (
            ("wrongSiteKey", "readerFailure", EPHEMERAL), ("garbledProof", "readerFailure", EPHEMERAL),
            ("replayed", "readerFailure", EPHEMERAL), ("greetingAgain", "readerFailure", EPHEMERAL),
            ("earlyGrant", "readerFailure", EPHEMERAL), ("garbled", "readerFailure", NOTHING), ("cut", "readerFailure", NOTHING),
            ("silent", "readerTimedOutAPDU", NOTHING), ("silentAfterGreeting", "readerTimedOutAPDU", EPHEMERAL),
            ("silentAtEnd", "readerTimedOutAPDU", SEALED), ("disconnectAtFirst", "bluetoothCommunicationFailed", NOTHING),
            ("disconnectAtProof", "bluetoothCommunicationFailed", EPHEMERAL),
            ("disconnectAtEnd", "bluetoothCommunicationFailed", SEALED)):
        reader.fault = fault
        meets(f"the fault {fault}", status, learned)
    reader.fault = None
    meets("after all faults the door opens", "success", SEALED, True)

    forgotten = run("dbus-send", "--system", "--print-reply", "--dest=org.bluez", "/org/bluez/hci0",
                    "org.bluez.Adapter1.RemoveDevice", f"objpath:{DEVICE}")
    # With bluez, badged has let bluetoothd forget the reader already, until its next advertisement.
    check("bluetoothd forgets the reader", forgotten.returncode == 0 or "DoesNotExist" in forgotten.stderr, forgotten)
    meets("a reader that bluetoothd has forgotten is searched", "success", SEALED, True)

    reader.is_hasty = True
    meets("a reader that speaks before it confirms that notifications are on", "success", SEALED, True)
    reader.is_hasty = False

    reader.mtu = 23
    meets("MTU 23: the door opens in pieces", "success", SEALED, True)
    reader.fault = "doubled"
    meets("MTU 23: repeated pieces", "success", SEALED, True)
    reader.fault = None
    reader.fragments = False
    meets("MTU 23: a reader without pieces fails", "readerFailure", NOTHING)
    reader.mtu = 247
    meets("a reader without pieces opens with long packets", "success", SEALED, True)
    reader.fragments = True

    issued = [site.issuer, reader.location, site.identifier, site.key]
    reader.certificate = certificate(*issued)
    meets("a reader with a certificate", "success", SEALED, True)
    reader.certificate = certificate(*issued, ends=int(time.time()) - 60)
    meets("an expired certificate", "readerFailure", NOTHING)
    reader.certificate = certificate(site.key, *issued[1:])
    meets("a certificate of another issuer", "readerFailure", NOTHING)
    home, reader.location = reader.location, revoked
    reader.certificate = certificate(site.issuer, revoked, site.identifier, site.key)
    meets("a revoked reader with a certificate", "readerFailure", NOTHING)
    reader.certificate = None
    meets("a revoked reader without a certificate", "readerFailure", NOTHING)
    reader.location = home

    reader.is_old = True
    meets("a reader without encryption, of a site that is not marked as legacy", "readerTimedOutAPDU", EPHEMERAL)
    reader.site = old.identifier
    for fragments in (True, False):
        reader.fragments = fragments
        result = client.open(door)
        reader.wait_for_end()
        check("a reader without encryption, of a site that is marked as legacy, opens", (result["status"], result["accessDecision"])
              == ("success", "granted") and reader.learned() == [PUBLIC_KEY] and reader.visitors[-1] == key, (result, badged.log()))
    reader.is_old, reader.fragments = False, True

    reader.site = site.identifier
    others = [PlainClient(DEVICE) for _ in range(2)]
    # With bluez, badged lets bluetoothd forget the reader after an opening, unless another program listens.
    client.count("DOOR_READER", 1)
    for number, other in enumerate(others):
        other.listen()
        reader.wait_for_end()
        meets(f"other programs listen to the reader: {number + 1}", "success", SEALED, True)
    for other in others:
        other.leave()
    descriptor = others[0].acquire()
    client.wait_until_cool(door)
    result = client.open_now(door)
    check("a reader whose notifications another program has acquired is busy", result["status"] == "busy"
          and "another program" in result["reason"], (result, badged.log()))
    os.close(descriptor)
    result = client.open_now(door)
    check("it opens when that program has let them go", result["status"] == "success", (result, badged.log()))
    reader.wait_for_end()
    check("the connection of that program ends, too", client.wait_until(lambda: radio.set()["links"] == 0), radio.set())

    reader.site = bytes(16)
    meets("a reader of another site", "keyNotFound", NOTHING)
    reader.site = site.identifier

    stranger = site.reader(radio, 2, "front", fault="wrongSiteKey")
    other = client.find("front", door)
    check("two readers of one name are two readers", other not in (None, door), client.readers)
    result = client.open(other)
    check("the stranger of the same name fails and learns nothing", result["status"] == "readerFailure"
          and stranger.learned() == EPHEMERAL and not stranger.visitors, result)
    meets("the true one of the two opens", "success", SEALED, True)
    stranger.fault = None
    first, second = client.open(door), client.open_now(other)
    check("another reader opens at once while the connection to the first one ends", (first["status"], second["status"])
          == ("success", "success") and stranger.visitors == [key], (first, second))
    stranger.wait_for_end()

    reader.fault = lambda: stop(bluetoothd)
    result = client.open(door)
    check("the end of bluetoothd ends the opening", result["status"] == "bluetoothCommunicationFailed"
          and result["reason"] == "bluetoothd has ended", result)
    check("the credential was not sent", reader.learned() == EPHEMERAL)
    check("no opening leaves a descriptor behind", client.wait_until(lambda: len(os.listdir(opened)) <= descriptors),
          os.listdir(opened))
    badged.end()
    radio.unplug()


start_bus()
for way in BACKENDS:
    run_faults(way)
finish()

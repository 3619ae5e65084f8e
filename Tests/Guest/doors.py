# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps of the scenarios that open doors: linked controllers, readers on them, a site that issues keys, and a client that opens."""
import base64
import hashlib
import json
import os
import subprocess
import tempfile

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import harness
from guest import HERE, LIMIT, NOBODY, WORK, Badged, ScanClient
from reader import CURVE, Reader, point, sign


class Radio:
    """Linked controllers, plugged in until the scenario ends; the program is linked.py."""

    def __init__(self, *options):
        self.process = subprocess.Popen(["/usr/bin/python3", os.path.join(HERE, "linked.py"), *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        harness.children.append(self.process)
        self.indexes = json.loads(self.process.stdout.readline())["indexes"]

    def set(self, **command):
        """Sends a command; returns the answer with the state of the air."""
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def unplug(self):
        self.process.stdin.close()
        self.process.wait(LIMIT)


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Site:
    """A site: its identifier, the key of its readers, and the issuer of keys and certificates."""

    def __init__(self):
        self.identifier = os.urandom(16)
        self.key, self.issuer = (ec.generate_private_key(CURVE) for _ in range(2))

    def reader(self, radio, number, name, **settings):
        """A reader of this site on controller `number`."""
        made = Reader(radio.indexes[number], name, self.identifier, os.urandom(16), self.key)
        for setting, value in settings.items():
            setattr(made, setting, value)
        return made

    def fingerprint(self):
        der = self.issuer.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return hashlib.sha256(der).hexdigest()

    def trusted(self, **trust):
        """The site as an enrolment file names it. docs/protocol/keys.md."""
        return {"siteId": self.identifier.hex(), **trust}

    def invitation(self, *others, **trust):
        """An enrolment file that is an invitation, for this site and for others."""
        public = point(self.issuer)
        jwk = {"kty": "EC", "crv": "P-256", "x": base64url(public[1:33]), "y": base64url(public[33:])}
        header = {"alg": "ES256", "typ": "badged-enrolment", "jwk": jwk}
        payload = {"version": 1, "iss": "site", "serial": 1, "sites": [self.trusted(**trust), *others]}
        text = ".".join(base64url(json.dumps(part).encode()) for part in (header, payload))
        return text + "." + base64url(sign(self.issuer, text.encode()))


class DoorBadged(Badged):
    """badged with a key store."""

    def __init__(self, backend, site, **ble):
        store = tempfile.mkdtemp(dir=WORK)
        os.chown(store, NOBODY, NOBODY)
        super().__init__(backend, folder=store, sections=f"[keys]\nissuer = {WORK}\nissuer_keys = {site.fingerprint()}\n", **ble)

    def client(self):
        return DoorClient(self)


class DoorClient(ScanClient):
    """A client that opens readers. It remembers the states and the results of openings."""

    def __init__(self, badged):
        super().__init__(badged)
        self.openings = []

    def remember(self, message):
        super().remember(message)
        if message["msg"] in ("OPENING", "OPENING_RESULT"):
            self.openings.append(message)

    def call(self, name, **command):
        """Sends a command; returns the message with this name."""
        self.send(**command)
        return self.until(lambda m: m["msg"] == name)

    def enrol(self, site, *others, **trust):
        """Makes the endpoint with a key for this site, and for others; returns the public key."""
        setup = self.call("ENDPOINT_SETUP", cmd="SETUP_ENDPOINT", invitation=site.invitation(*others, **trust))
        keys = self.call("KEYS", cmd="GET_KEYS")["keys"]
        if not keys:
            raise RuntimeError(setup)
        return bytes.fromhex(keys[0]["publicKey"])

    def find(self, name, other=None):
        """Waits until a reader with this name is received, another one than `other`; returns its identifier."""
        message = self.until(lambda m: m["msg"] == "DOOR_READER" and m["reader"]["name"] == name and m["reader"]["id"] != other)
        return message and message["reader"]["id"]

    def sees(self, reader):
        """Waits for the next message about this reader."""
        return self.until(lambda m: m["msg"] == "DOOR_READER" and m["reader"]["id"] == reader) is not None

    def wait_until_cool(self, reader):
        """Waits until the reader has cooled down; readers that are received change often enough to look again."""
        while any(known["id"] == reader and known["coolingDown"] for known in self.known()) and self.sees(reader):
            pass

    def open(self, reader, **more):
        """Opens a reader, once it is received and has cooled down; returns the result."""
        self.sees(reader)
        self.wait_until_cool(reader)
        return self.open_now(reader, **more)

    def open_now(self, reader, **more):
        self.openings = []
        self.send(cmd="OPEN_READER", reader=reader, openingType="applicationSpecific", **more)
        return self.until(lambda m: m["msg"] == "OPENING_RESULT")

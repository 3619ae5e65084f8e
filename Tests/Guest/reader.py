# SPDX-License-Identifier: GPL-3.0-or-later
"""A PKOC door reader for the guest, with faults. It shares nothing with badged: its cryptography is python3-cryptography.

docs/protocol/door-readers.md, PKOC. `wrong_vectors` compares it with Tests/Vectors/pkoc-ble.json.
"""
import hashlib
import json
import os
import struct
import threading
import time

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESCCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from controller import structure
from gattserver import CONFIGURATION, NOTIFY, READ, WRITE, WRITE_COMMAND, Attributes, GATTConnection, GATTServer, Management, uuid

LIMIT = 120.0  # seconds
CURVE = ec.SECP256R1()
SERVICE = uuid("FFF0")
INPUT, OUTPUT = uuid("fe278a85-89ae-191f-5dde-841202693835"), uuid("e5b1b3b5-3cca-3f76-cd86-a884cc239692")
PUBLIC_KEY, READER_KEY, SIGNATURE, RESPONSE, DEVICE_KEY, TIME, INFORMATION, LOCATION, SITE, CERTIFICATE, ENCRYPTED = (
    1, 2, 3, 4, 7, 9, 0x0C, 0x0D, 0x0E, 0x10, 0x40)
GRANTED, DENIED = 3, 2
FOREVER = 0xFFFFFFFF


def point(key, form=PublicFormat.UncompressedPoint):
    return key.public_key().public_bytes(Encoding.X962, form)


def compressed(key):
    return point(key, PublicFormat.CompressedPoint)


def sign(key, message):
    r, s = decode_dss_signature(key.sign(message, ec.ECDSA(hashes.SHA256())))
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def is_genuine(public, message, signature):
    der = encode_dss_signature(int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big"))
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(CURVE, public).verify(der, message, ec.ECDSA(hashes.SHA256()))
        return True
    except InvalidSignature:
        return False


def encode(*values):
    """Tags, BER lengths and values."""
    return b"".join(bytes([tag]) + (b"\x81" if len(value) > 127 else b"") + bytes([len(value)]) + value for tag, value in values)


def decode(message):
    values = {}
    while message:
        start = 3 if message[1] == 0x81 else 2
        end = start + message[start - 1]
        values[message[0]] = message[start:end]
        message = message[end:]
    return values


def revocations(issuer, site, *locations):
    """A list of revoked readers."""
    now = int(time.time())
    body = b"\1" + site + struct.pack(">IH", now, len(locations)) + b"".join(one + struct.pack(">I", now) for one in locations)
    return body + sign(issuer, body)


def certificate(issuer, location, site, key, ends=FOREVER):
    """A certificate of a reader; `ends` is in seconds since 1970."""
    body = b"\1" + location + site + struct.pack(">II", 0, ends) + compressed(key)
    return body + sign(issuer, body)


class Session:
    """One dialogue: the messages of the reader, and the public key of a genuine credential."""

    def __init__(self, site, location, key, reader_certificate=None, information=b"\3\1\0\0\0\1", ephemeral=None):
        self.site, self.location, self.key, self.certificate = site, location, key, reader_certificate
        self.information = information
        self.ephemeral = ephemeral or ec.generate_private_key(CURVE)
        self.device = None

    def greeting(self):
        extra = [(CERTIFICATE, self.certificate)] if self.certificate else []
        return encode((INFORMATION, self.information), (READER_KEY, compressed(self.ephemeral)), (LOCATION, self.location), *extra,
                      (SITE, self.site))

    def transcript(self):
        return self.site + self.location + self.device[1:33] + compressed(self.ephemeral)[1:]

    def proof(self, message):
        """Takes the ephemeral key of the credential."""
        self.device = decode(message)[DEVICE_KEY]
        return encode((SIGNATURE, sign(self.key, self.transcript())))

    def verify(self, message):
        """Returns the public key of the credential whose signature without encryption is right, else None."""
        values = decode(message)
        return values[PUBLIC_KEY] if is_genuine(values[PUBLIC_KEY], compressed(self.ephemeral), values[SIGNATURE]) else None

    def open(self, message):
        """Returns the public key of the credential whose sealed signature is right, else None."""
        shared = self.ephemeral.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(CURVE, self.device))
        nonce = bytes.fromhex("0000000000000001") + struct.pack(">I", 1)
        try:
            plain = AESCCM(hashlib.sha256(shared).digest(), 16).decrypt(nonce, decode(message)[ENCRYPTED], None)
        except InvalidTag:
            return None
        values = decode(plain)
        return values[PUBLIC_KEY] if is_genuine(values[PUBLIC_KEY], self.transcript(), values[SIGNATURE]) else None


class Reader:
    """A reader on the controller hci`index`. What it does can be changed between two connections."""

    def __init__(self, index, name, site, location, key):
        self.name, self.site, self.location, self.key = name, site, location, key
        self.certificate, self.mtu, self.fragments, self.code = None, 247, True, GRANTED
        # Whether the reader speaks before it confirms that notifications are on.
        self.is_hasty = False
        # Whether the reader supports only the flow without encryption.
        self.is_old = False
        # What the reader does wrong: a name in `Visit`, or a function that is called instead of the proof.
        self.fault = None
        # Public keys of genuine credentials, and all connections.
        self.visitors, self.connections = [], []
        # The last session with a genuine credential, for faults that replay it.
        self.recorded = None
        self.changed = threading.Condition()
        self.management = Management(index)
        address = self.management.wait_for_power()
        self.attributes = Attributes([
            (uuid("1800"), [(uuid("2A00"), READ, name.encode())]),
            (SERVICE, [(INPUT, WRITE | WRITE_COMMAND, b""), (OUTPUT, READ | NOTIFY, b"")])])
        self.server = GATTServer(address, self.accept)
        self.advertise()

    def advertise(self, every=100, service=SERVICE):
        """Advertises every so many milliseconds."""
        kind = 3 if len(service) == 2 else 7
        # Nobody reads the events of the first socket, whose buffer fills.
        Management(self.management.index).advertise(structure(kind, service), structure(9, self.name.encode()), every)

    def accept(self, channel, central):
        Visit(self, channel, central).run()

    def wait_for(self, condition):
        """Waits for something that happens to the reader."""
        with self.changed:
            return self.changed.wait_for(condition, LIMIT)

    def happened(self):
        with self.changed:
            self.changed.notify_all()

    def learned(self):
        """The tags of the messages of the credential in the last connection."""
        return [message[0] for message in self.connections[-1].messages]

    def wait_for_end(self):
        """Waits until the last connection is over."""
        return self.wait_for(lambda: self.connections and self.connections[-1].is_over)


class Visit:
    """One connection to a reader, with the faults of the reader."""

    def __init__(self, reader, channel, central):
        self.reader, self.central = reader, central
        key = ec.generate_private_key(CURVE) if reader.fault == "wrongSiteKey" else reader.key
        information = b"\3\1\0\0\0\1" if reader.fragments else b"\3\0\0\0\1"
        self.session = Session(reader.site, reader.location, key, reader.certificate, information)
        if reader.fault == "replayed":
            self.session.ephemeral = reader.recorded.ephemeral
        self.connection = GATTConnection(channel, reader.attributes, reader.mtu, reader.is_hasty, self.written)
        self.pieces, self.is_over = b"", False
        # The messages of the credential.
        self.messages = []
        reader.connections.append(self)

    def run(self):
        self.reader.happened()
        try:
            self.connection.serve()
        except OSError:  # the connection ended while the reader wrote
            pass
        self.connection.channel.close()
        self.is_over = True
        self.reader.happened()

    def notify(self, message, times=1):
        size = self.connection.mtu - 4 if self.reader.fragments else len(message)
        parts = [message[start:start + size] for start in range(0, len(message), size)]
        for number, part in enumerate(parts):
            mark = bytes([2 if number == len(parts) - 1 else 1 if number else 0]) if self.reader.fragments else b""
            for _ in range(times):
                # The stack of a reader cuts what is longer.
                self.connection.notify(self.reader.attributes.handles[OUTPUT], (mark + part)[:self.connection.mtu - 3])

    def written(self, handle, value):
        if handle == self.reader.attributes.handles[OUTPUT] + 1:
            if value == b"\1\0":
                self.greet()
            return
        if self.reader.fragments:
            self.pieces += value[1:]
            if value[0] != 2:
                return
            value, self.pieces = self.pieces, b""
        self.messages.append(value)
        if self.reader.fault == "rehearsal":
            return self.notify(bytes(66 if len(self.messages) == 1 else 3))
        if value[0] == DEVICE_KEY and not self.reader.is_old:
            self.prove(value)
        elif value[0] == ENCRYPTED:
            self.judge(self.session.open(value))
        elif value[0] == PUBLIC_KEY:
            self.judge(self.session.verify(value))
        self.reader.happened()

    def greet(self):
        greeting = self.session.greeting()
        match self.reader.fault:
            case "silent": return
            case "disconnectAtFirst": return self.leave()
            case "garbled": greeting = os.urandom(len(greeting))
            case "cut": greeting = greeting[:-1]
        self.notify(greeting, 2 if self.reader.fault == "doubled" else 1)

    def prove(self, message):
        proof = self.session.proof(message)
        if callable(self.reader.fault):
            return self.reader.fault()
        match self.reader.fault:
            case "silentAfterGreeting": return
            case "disconnectAtProof": return self.leave()
            case "replayed": proof = self.reader.recorded.last_proof
            case "garbledProof": proof = proof[:20] + bytes([proof[20] ^ 1]) + proof[21:]
            case "greetingAgain": proof = self.session.greeting()
            case "earlyGrant": proof = encode((RESPONSE, bytes([GRANTED])))
        self.session.last_proof = proof
        self.notify(proof)

    def judge(self, visitor):
        if visitor is None:
            return self.notify(encode((RESPONSE, b"\x06")))
        self.reader.visitors.append(visitor)
        self.reader.recorded = self.session
        match self.reader.fault:
            case "silentAtEnd": return
            case "disconnectAtEnd": return self.leave()
        self.notify(encode((RESPONSE, bytes([self.reader.code]))))

    def leave(self):
        """Disconnects, as a reader does after its own timeout."""
        self.reader.management.disconnect(self.central)


def wrong_vectors():
    """Repeats the encrypted flows of the vectors; returns the number of those in which a byte or a signature differs."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Vectors")
    with open(os.path.join(folder, "pkoc-ble.json"), encoding="utf-8") as file:
        vectors = json.load(file)
    keys = {key["label"]: ec.derive_private_key(int(key["private"], 16), CURVE) for key in vectors["keys"]}
    site, location = (bytes.fromhex(vectors[name]) for name in ("siteIdentifier", "readerLocationIdentifier"))
    wrong = 0
    for flow in vectors["flows"]:
        if flow.get("plaintext") is None:
            continue
        greeting, device_key, proof, sealed, _ = (bytes.fromhex(message["hex"]) for message in flow["messages"])
        values = decode(greeting)
        session = Session(site, location, keys["reader" if CERTIFICATE in values else "site"], values.get(CERTIFICATE),
                          values[INFORMATION], keys["reader ephemeral"])
        session.proof(device_key)
        wrong += not (session.greeting() == greeting and session.transcript().hex() == flow["signedBytes"]
                      and is_genuine(point(session.key), session.transcript(), decode(proof)[SIGNATURE])
                      and session.open(sealed) == point(keys["device"]))
    return wrong

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""aliro.py [FILE]: prints aliro.json, taps of Aliro 1.0 over NFC from both sides, or compares FILE with it.

It shares nothing with badged: its cryptography is python3-cryptography. All keys are SHA-256 of a name. Signatures have a
nonce that is SHA-256 of key and message, so that the output is always the same.
"""
import hashlib
import hmac
import json
import sys

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

CURVE = ec.SECP256R1()
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
READER_USAGE, DEVICE_USAGE = bytes.fromhex("415D9569"), bytes.fromhex("4E887B4C")
APPLICATION = bytes.fromhex("A000000909ACCE5501")


def digest(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def tlv(tag, value):
    size = len(value)
    return bytes.fromhex(tag) + (bytes([size]) if size < 128 else bytes([0x81, size])) + value


class Key:
    def __init__(self, name):
        self.scalar = digest(b"badged Aliro vectors: ", name.encode())
        self.key = ec.derive_private_key(int.from_bytes(self.scalar, "big"), CURVE)
        numbers = self.key.public_key().public_numbers()
        self.x, self.y = numbers.x.to_bytes(32, "big"), numbers.y.to_bytes(32, "big")
        self.point = b"\x04" + self.x + self.y

    def sign(self, message):
        """ECDSA, SEC 1 4.1.3."""
        nonce = int.from_bytes(digest(self.scalar, message), "big") % ORDER
        r = ec.derive_private_key(nonce, CURVE).public_key().public_numbers().x % ORDER
        s = pow(nonce, -1, ORDER) * (int.from_bytes(digest(message), "big") + r * int.from_bytes(self.scalar, "big")) % ORDER
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    def agree(self, other):
        return self.key.exchange(ec.ECDH(), other.key.public_key())


def hkdf(secret, salt, info, count):
    """RFC 5869."""
    extracted = hmac.new(salt, secret, "sha256").digest()
    out = block = b""
    for number in range(1, 9):
        block = hmac.new(extracted, block + info + bytes([number]), "sha256").digest()
        out += block
    return out[:count]


class Tap:
    """One tap: what both sides send, and the keys that they derive."""

    def __init__(self, reader, card, identifier, number, version, fast, proprietary, vendor=b""):
        self.reader, self.card, self.identifier, self.version, self.vendor = reader, card, identifier, version, vendor
        self.proprietary, self.parameters = proprietary, bytes([fast, 1])
        self.reader_ephemeral, self.card_ephemeral = Key(f"reader {number}"), Key(f"card {number}")
        self.transaction = digest(b"transaction", bytes([number]))[:16]
        shared = self.reader_ephemeral.agree(self.card_ephemeral)
        self.agreed = digest(shared, b"\x00\x00\x00\x01", self.transaction)

    def salt(self, word, credential):
        return (self.reader.x + word + self.identifier + b"\x5e" + tlv("5C", self.version) + self.reader_ephemeral.x
                + self.transaction + self.parameters + self.proprietary + (self.card.x if credential else b""))

    def derive(self, secret, word, credential, count):
        return hkdf(secret, self.salt(word, credential), self.card_ephemeral.x + self.vendor, count)

    def signed(self, usage):
        return (tlv("4D", self.identifier) + tlv("86", self.card_ephemeral.x) + tlv("87", self.reader_ephemeral.x)
                + tlv("4C", self.transaction) + tlv("93", usage))

    def select(self):
        body = tlv("6F", tlv("84", APPLICATION) + self.proprietary)
        return b"\x00\xa4\x04\x00\x09" + APPLICATION + b"\x00", body + b"\x90\x00"

    def auth0(self, cryptogram=b""):
        data = (tlv("41", self.parameters[:1]) + tlv("42", self.parameters[1:]) + tlv("5C", self.version)
                + tlv("87", self.reader_ephemeral.point) + tlv("4C", self.transaction) + tlv("4D", self.identifier))
        answer = tlv("86", self.card_ephemeral.point) + (tlv("9D", cryptogram) if cryptogram else b"") + self.vendor
        return command(0x80, data), answer + b"\x90\x00"

    def auth1(self, signalling=b"\x00\x00"):
        keys = self.derive(self.agreed, b"Volatile****", False, 160)
        self.reader_key, self.card_key = keys[:32], keys[32:64]
        data = tlv("41", b"\x01") + tlv("9E", self.reader.sign(self.signed(READER_USAGE)))
        plain = (tlv("5A", self.card.point) + tlv("9E", self.card.sign(self.signed(DEVICE_USAGE))) + tlv("5E", signalling)
                 + times())
        return command(0x81, data), seal(self.card_key, 1, 1, plain) + b"\x90\x00"

    def exchange(self, first):
        """`first` is the number of the next message of the card."""
        return (command(0xC9, seal(self.reader_key, 0, 1, tlv("97", b"\x01\x82"))),
                seal(self.card_key, 1, first, b"\x00\x02\x00\x00") + b"\x90\x00")

    def persistent(self):
        return self.derive(self.agreed, b"Persistent**", True, 32)

    def fast(self, persistent):
        keys = self.derive(persistent, b"VolatileFast", True, 160)
        self.reader_key, self.card_key = keys[32:64], keys[64:96]
        return AESGCM(keys[:32]).encrypt(bytes(12), tlv("5E", b"\x00\x00") + times(), None)


def times():
    return tlv("91", b"2026-11-22T12:00:00Z") + tlv("92", b"2026-11-22T12:00:00Z")


def command(instruction, data):
    return bytes([0x80, instruction, 0, 0, len(data)]) + data + b"\x00"


def seal(key, side, counter, plain):
    return AESGCM(key).encrypt(bytes(7) + bytes([side]) + counter.to_bytes(4, "big"), plain, None)


def steps(*pairs):
    return [{"command": sent.hex(), "answer": answer.hex()} for sent, answer in pairs]


def describe(tap):
    return {"readerEphemeral": tap.reader_ephemeral.scalar.hex(), "cardEphemeral": tap.card_ephemeral.scalar.hex(),
            "transaction": tap.transaction.hex()}


def standard(tap, signalling=b"\x00\x00"):
    dialogue = steps(tap.select(), tap.auth0(), tap.auth1(signalling), tap.exchange(2))
    return {**describe(tap), "agreed": tap.agreed.hex(), "readerKey": tap.reader_key.hex(), "cardKey": tap.card_key.hex(),
            "persistent": tap.persistent().hex(), "signedByReader": tap.signed(READER_USAGE).hex(),
            "signedByCard": tap.signed(DEVICE_USAGE).hex(), "steps": dialogue}


def main():
    reader, card = Key("reader"), Key("card")
    identifier = digest(b"group")[:16] + digest(b"subgroup")[:16]
    plain = tlv("A5", tlv("80", b"\x00\x00") + tlv("5C", b"\x01\x00"))
    # Sizes, a vendor, and a length in two bytes, which must go into the keys as it is.
    body = (tlv("80", b"\x00\x00") + tlv("5C", b"\x01\x00\x00\x09") + tlv("7F66", bytes.fromhex("0202020002020200"))
            + tlv("B3", b"\x01\x02\x03"))
    rich = b"\xa5\x81" + bytes([len(body)]) + body
    old = tlv("A5", tlv("80", b"\x00\x00") + tlv("5C", b"\x00\x09"))
    first = Tap(reader, card, identifier, 1, b"\x01\x00", 0, plain)
    vectors = {"source": "Tests/Vectors/aliro.py", "identifier": identifier.hex(),
               "reader": {"private": reader.scalar.hex(), "public": reader.point.hex()},
               "card": {"private": card.scalar.hex(), "public": card.point.hex()},
               "standard": standard(first)}
    vectors["rich"] = standard(Tap(reader, card, identifier, 2, b"\x01\x00", 0, rich, tlv("B2", b"\x0a\x0b")))
    vectors["draft"] = standard(Tap(reader, card, identifier, 3, b"\x00\x09", 0, old), b"\x00")
    fast = Tap(reader, card, identifier, 4, b"\x01\x00", 1, plain)
    cryptogram = fast.fast(first.persistent())
    vectors["fast"] = {**describe(fast), "persistent": first.persistent().hex(), "cryptogram": cryptogram.hex(),
                       "readerKey": fast.reader_key.hex(), "cardKey": fast.card_key.hex(),
                       "steps": steps(fast.select(), fast.auth0(cryptogram), fast.exchange(1))}
    # The card has forgotten the key, and sends random bytes.
    again = Tap(reader, card, identifier, 5, b"\x01\x00", 1, plain)
    vectors["forgotten"] = {**standard(again), "steps": steps(
        again.select(), again.auth0(digest(b"random") * 2), again.auth1(), again.exchange(2))}
    return json.dumps(vectors, indent=1)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(main())
    elif open(sys.argv[1], encoding="utf-8").read() != main() + "\n":
        sys.exit(f"{sys.argv[1]} has other vectors")

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""pkoc_rsa.py [FILE]: prints pkoc-rsa.json, a PKOC card certificate of an issuer with an RSA key, or compares FILE with it.

The card is that of `cvc` in pkoc-nfc.json. The signature is PKCS#1 v1.5 with SHA-256, computed with plain numbers.
"""
import hashlib
import json
import os
import sys

P = int(
    "f3003c7283ac9268b44b82197fd3f22039a62870ba4e06ebdf280ba1136d2e8b78744b02c6ec01cbc505287482309751d7ae"
    "d603886f8534183a659f71fedf570b12c4f54fa80948cef6078c7c4061251d9b70e9e0b891eff81244dc67c3b772505094fd"
    "c9a5d9ddb048fd216f4b31efa3182a43ed77cf5d6cd99866f2e0de27", 16)
Q = int(
    "d6dad86de0776edafc4f755624b86cba592e64b6521fdf002dab3e2fade3c6c12f76639f98ec48abc9a2e2b90451c402baa2"
    "a53231f7422396f0e9e34ac114eec1fa85ef3274318f8bb73640c561cea388708e60d526d71620dee482a49a72f52e5fb955"
    "ead2777a3c14b5b3f5db604fead786b6d8f32e99e69878f2a11c3639", 16)
N, E = P * Q, 65537
LENGTH = 256


def tlv(tag, value):
    size = len(value)
    length = bytes([size]) if size < 128 else b"\x81" + bytes([size]) if size < 256 else b"\x82" + size.to_bytes(2, "big")
    return bytes.fromhex(tag) + length + value


def sign(message):
    """RFC 8017, 8.2.1."""
    info = bytes.fromhex("3031300d060960864801650304020105000420") + hashlib.sha256(message).digest()
    padded = b"\x00\x01" + b"\xff" * (LENGTH - 3 - len(info)) + b"\x00" + info
    number = pow(int.from_bytes(padded, "big"), pow(E, -1, (P - 1) * (Q - 1)), N)
    assert pow(number, E, N) == int.from_bytes(padded, "big")
    return number.to_bytes(LENGTH, "big")


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "pkoc-nfc.json"), encoding="utf-8") as file:
    cvc = json.load(file)["cvc"]
key = tlv("7F49", tlv("06", bytes.fromhex("2A864886F70D010101")) + tlv("81", N.to_bytes(LENGTH, "big"))
          + tlv("82", E.to_bytes(3, "big")))
card = tlv("7F49", tlv("06", bytes.fromhex("2A8648CE3D030107")) + tlv("86", bytes.fromhex(cvc["subject"]["public"])))
body = tlv("7F4E", tlv("5F29", b"\x00") + tlv("42", b"0100BADGEDRSA001") + card + tlv("5F20", b"CARD000000000043")
           + tlv("5F25", bytes([2, 6, 0, 1, 0, 1])) + tlv("5F24", bytes([3, 6, 0, 1, 0, 1])))
certificate = tlv("7F21", body + tlv("5F37", sign(body)))
text = json.dumps({"source": "Tests/Vectors/pkoc_rsa.py", "reference": "0100BADGEDRSA001", "issuerKey": key.hex(),
                   "modulus": N.to_bytes(LENGTH, "big").hex(), "signed": body.hex(), "signature": sign(body).hex(),
                   "certificate": certificate.hex()}, indent=1)
if len(sys.argv) == 1:
    print(text)
elif open(sys.argv[1], encoding="utf-8").read() != text + "\n":
    sys.exit(f"{sys.argv[1]} has other vectors")

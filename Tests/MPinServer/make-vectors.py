#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes Tests/Vectors/mpin.json: each step of M-Pin by the reference in this folder. make-vectors.py [--check]"""

import json
import os
import sys

import bn254cx as curve
import mpin

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Vectors/mpin.json")


def number(label):
    """A number below the order that depends on the label only."""
    return int.from_bytes(mpin.sha256(label.encode()) + mpin.sha256(b"2" + label.encode()), "big") % (curve.N - 1) + 1


def record(index, pin, login_pin, day):
    identity = json.dumps({"mobile": 1, "userID": "user%d@mpin.test" % index, "salt": "%032x" % number("salt%d" % index)})
    identity = identity.encode()
    digest = mpin.sha256(identity)
    first, second = (mpin.Authority(number("master%d" % n)) for n in (1, 2))
    secret = curve.add(first.client_share(digest), second.client_share(digest))
    token = mpin.token(secret, pin, identity)
    x, y = number("x%d" % index), number("y%d" % index)
    u, ut = mpin.pass_one(x, identity, day)
    shares = [] if day is None else [authority.permit_share(digest, day) for authority in (first, second)]
    permit = curve.add(*shares) if shares else None
    v = mpin.pass_two(x, y, token, login_pin, identity, permit)
    server = curve.add(first.server_share, second.server_share, curve.Fp2)
    accepted = mpin.accepts(server, identity, day, u if day is None else ut, y, v)
    answered = mpin.is_answer(first.master + second.master, identity, day, u if day is None else ut, y, v)
    if accepted != (pin == login_pin) or answered != accepted:
        raise SystemExit("the reference is wrong for record %d" % index)
    hexadecimal = lambda point: curve.encode(point).hex()
    return {
        "id": identity.hex(), "digest": digest.hex(), "point": hexadecimal(mpin.identity_point(identity)),
        "share1": hexadecimal(first.client_share(digest)), "share2": hexadecimal(second.client_share(digest)),
        "clientSecret": hexadecimal(secret), "pin": "%04d" % pin, "token": hexadecimal(token), "day": day,
        "permit1": hexadecimal(shares[0]) if shares else None, "permit2": hexadecimal(shares[1]) if shares else None,
        "x": "%064x" % x, "u": hexadecimal(u), "ut": hexadecimal(ut) if ut else None,
        "y": "%064x" % y, "loginPin": "%04d" % login_pin, "v": hexadecimal(v), "accepted": accepted,
    }


def key_pair(index):
    """A private key z and the public key Q/z of MPinMFA."""
    private = [1, 2, curve.N - 1, number("key3"), number("key4")][index]
    return private, curve.times(pow(private, -1, curve.N), curve.G2, curve.Fp2)


def key_hex(point):
    return "".join("%064x" % part for part in point[0] + point[1])


def signature(index):
    """A document that a user with a public key signs."""
    private, public = key_pair(index)
    key = bytes.fromhex(key_hex(public))
    identity = b'{"userID": "user%d@mpin.test"}' % index
    whole = identity + key
    first, second = (mpin.Authority(number("master%d" % n)) for n in (1, 2))
    shares = [authority.client_share(mpin.sha256(whole)) for authority in (first, second)]
    secret = curve.times(private, curve.add(*shares))
    pin, when, x = 1000 * index + 7, 1700000000 + index, number("x%d" % index)
    token = mpin.token(secret, pin, whole)
    u, _ = mpin.pass_one(x, whole, None)
    document = mpin.sha256(b"document %d" % index)
    y = int.from_bytes(mpin.sha256(when.to_bytes(4, "big") + curve.encode(u) + document), "big") % curve.N
    v = mpin.pass_two(x, y, token, pin, whole, None)
    server = curve.add(first.server_share, second.server_share, curve.Fp2)
    left = curve.add(curve.times(y, mpin.identity_point(whole)), u)
    if not curve.product_is_one([(v, public), (left, server)]):
        raise SystemExit("the reference is wrong for signature %d" % index)
    return {
        "private": "%064x" % private, "public": key.hex(), "id": identity.hex(), "share1": curve.encode(shares[0]).hex(),
        "share2": curve.encode(shares[1]).hex(), "pin": "%04d" % pin, "token": curve.encode(token).hex(),
        "x": "%064x" % x, "hash": document.hex(), "epochTime": when, "u": curve.encode(u).hex(),
        "v": curve.encode(v).hex(),
    }


def main():
    pins = [(1234, 1234), (0, 0), (9999, 9999), (42, 42), (1234, 1235), (0, 1), (7, 7), (1000, 1000)]
    records = [record(k, *pins[k % 8], None if k % 4 == 3 else 20000 + 7 * k) for k in range(12)]
    text = json.dumps({"comment": "made by Tests/MPinServer/make-vectors.py", "records": records,
                       "signatures": [signature(k) for k in range(5)]}, indent=1) + "\n"
    if "--check" in sys.argv:
        with open(PATH) as file:
            raise SystemExit(0 if file.read() == text else "Tests/Vectors/mpin.json is not what the reference computes")
    with open(PATH, "w") as file:
        file.write(text)


main()

# SPDX-License-Identifier: GPL-3.0-or-later
"""What the parties of M-Pin compute: trust authorities, client and login server. An independent reference for tests."""

import hashlib
import secrets

import bn254cx as curve


def sha256(data):
    return hashlib.sha256(data).digest()


def random_scalar():
    return 1 + secrets.randbelow(curve.N - 1)


def identity_point(identity):
    return curve.hash_to_point(sha256(identity))


def day_point(identity, day):
    return curve.hash_to_point(sha256(day.to_bytes(4, "big") + sha256(identity)))


class Authority:
    """A trust authority with its master secret."""

    def __init__(self, master=None):
        self.master = master or random_scalar()
        self.server_share = curve.times(self.master, curve.G2, curve.Fp2)

    def client_share(self, digest):
        """The share of the client secret for the hash of an M-Pin id."""
        return curve.times(self.master, curve.hash_to_point(digest))

    def permit_share(self, digest, day):
        return curve.times(self.master, curve.hash_to_point(sha256(day.to_bytes(4, "big") + digest)))


def challenged(identity, day, commitment, y):
    base = identity_point(identity)
    if day is not None:
        base = curve.add(base, day_point(identity, day))
    return curve.add(curve.times(y, base), commitment)


def accepts(server_secret, identity, day, commitment, y, v):
    """Whether v proves token and PIN. Without time permits the day is None.

    The shares of all authorities add up to server_secret. commitment is UT, or U without time permits.
    """
    return curve.product_is_one([(v, curve.G2), (challenged(identity, day, commitment, y), server_secret)])


def is_answer(master, identity, day, commitment, y, v):
    """The same for who knows the sum of the master secrets, in a fifth of the time. make-vectors.py compares both."""
    return v == curve.negative(curve.times(master, challenged(identity, day, commitment, y)))


# The client

def token(client_secret, pin, identity):
    return curve.add(client_secret, curve.negative(curve.times(pin, identity_point(identity))))


def pass_one(x, identity, day):
    base = identity_point(identity)
    return curve.times(x, base), None if day is None else curve.times(x, curve.add(base, day_point(identity, day)))


def pass_two(x, y, token_point, pin, identity, permit):
    key = curve.add(token_point, curve.times(pin, identity_point(identity)))
    if permit is not None:
        key = curve.add(key, permit)
    return curve.negative(curve.times((x + y) % curve.N, key))

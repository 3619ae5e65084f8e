# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys of wallets, in Python alone: BIP-39 seeds, BIP-32, secp256k1, Keccak-256. A second witness for the keys and
signatures of cards; slow, and not for secrets."""

import hashlib
import hmac

P = 2**256 - 2**32 - 977
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
G = (0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
     0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8)
HARDENED = 1 << 31


def add(a, b):
    """The sum of two points; None is the point at infinity."""
    if a is None or b is None:
        return a or b
    if a[0] == b[0]:
        if (a[1] + b[1]) % P == 0:
            return None
        slope = 3 * a[0] * a[0] * pow(2 * a[1], -1, P) % P
    else:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, P) % P
    x = (slope * slope - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def times(k, point=G):
    result = None
    while k:
        if k & 1:
            result = add(result, point)
        point, k = add(point, point), k >> 1
    return result


def uncompressed(point):
    return b"\x04" + point[0].to_bytes(32, "big") + point[1].to_bytes(32, "big")


def compressed(point):
    return bytes([2 + point[1] % 2]) + point[0].to_bytes(32, "big")


def seed(words):
    """BIP-39, without a passphrase."""
    return hashlib.pbkdf2_hmac("sha512", words.encode(), b"mnemonic", 2048)


def derive(words, path):
    """The private key at a path such as m/44'/60'/0'/0/0. BIP-32."""
    node = hmac.digest(b"Bitcoin seed", seed(words), "sha512")
    key, chain = int.from_bytes(node[:32], "big"), node[32:]
    for part in path.split("/")[1:]:
        index = int(part.rstrip("'")) + (HARDENED if part.endswith("'") else 0)
        start = b"\0" + key.to_bytes(32, "big") if index >= HARDENED else compressed(times(key))
        node = hmac.digest(chain, start + index.to_bytes(4, "big"), "sha512")
        key, chain = (int.from_bytes(node[:32], "big") + key) % N, node[32:]
    return key


def key_uid(words):
    """What a Keycard calls its keys."""
    return hashlib.sha256(uncompressed(times(derive(words, "m")))).hexdigest()


def keccak(data):
    """Keccak-256 as Ethereum uses it."""
    def rotate(value, count):
        return (value << count % 64 | value >> (64 - count % 64)) & (1 << 64) - 1

    def permute(a):
        register = 1
        for _ in range(24):
            columns = [a[x][0] ^ a[x][1] ^ a[x][2] ^ a[x][3] ^ a[x][4] for x in range(5)]
            mixed = [columns[(x + 4) % 5] ^ rotate(columns[(x + 1) % 5], 1) for x in range(5)]
            a = [[a[x][y] ^ mixed[x] for y in range(5)] for x in range(5)]
            (x, y), current = (1, 0), a[1][0]
            for t in range(24):
                x, y = y, (2 * x + 3 * y) % 5
                current, a[x][y] = a[x][y], rotate(current, (t + 1) * (t + 2) // 2)
            for y in range(5):
                row = [a[x][y] for x in range(5)]
                for x in range(5):
                    a[x][y] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5])
            for j in range(7):
                register = (register << 1 ^ (register >> 7) * 0x71) % 256
                if register & 2:
                    a[0][0] ^= 1 << (1 << j) - 1
        return a

    rate = 136
    padded = bytearray(data) + b"\x01" + bytes(-(len(data) + 1) % rate)
    padded[-1] |= 0x80
    state = [[0] * 5 for _ in range(5)]
    for block in range(0, len(padded), rate):
        for i in range(rate // 8):
            state[i % 5][i // 5] ^= int.from_bytes(padded[block + 8 * i:block + 8 * i + 8], "little")
        state = permute(state)
    return b"".join(state[i % 5][i // 5].to_bytes(8, "little") for i in range(4))


def address(point):
    """The address of Ethereum, in the form of EIP-55."""
    digits = keccak(uncompressed(point)[1:])[12:].hex()
    check = keccak(digits.encode()).hex()
    return "0x" + "".join(c.upper() if int(check[i], 16) >= 8 else c for i, c in enumerate(digits))


def recover(digest, signature):
    """The point whose key has made r | s | v with v = 27 or 28; None for a wrong or a high signature."""
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
    if len(signature) != 65 or signature[64] not in (27, 28) or not 0 < r < N or not 0 < s <= N // 2:
        return None
    square = (pow(r, 3, P) + 7) % P
    y = pow(square, (P + 1) // 4, P)
    if y * y % P != square:
        return None
    if y % 2 != signature[64] - 27:
        y = P - y
    inverse = pow(r, -1, N)
    e = int.from_bytes(digest, "big")
    return add(times(s * inverse % N, (r, y)), times(-e * inverse % N))

# SPDX-License-Identifier: GPL-3.0-or-later
"""The curve BN254CX in plain Python: both groups, and the Tate pairing. For tests; nothing here is constant-time.

A number of Fp2 is a pair (a, b) for a + bi with i² = -1. A number of Fp12 is a list of twelve numbers, the coefficients of
w⁰ to w¹¹, with w⁶ = 1 + i. A point is (x, y), or None for infinity. G1 is y² = x³ + 2 over Fp. G2 is y² = x³ + 2/(1 + i)
over Fp2, and (x, y) of G2 stands for the point (x w², y w³) of the curve over Fp12.
"""

P = 0x2400000008702A0DB0BDDF647A6366D3243FD6EE18093EE1BE6623EF5C1B55B3
N = 0x2400000008702A0DB0BDDF647A6366D2C43FD6EE0CC906CEBE11C0A636EB1F6D
G2 = (
    (0x19682D2C7053B256358B2500F5C34BBB907C85BFA03E2726C0851CEEE4D2EC74,
     0x1466B9EC3E19F64AA011C937A8E99743F81B97B0C209C30F47A58E8B2E29CFE1),
    (0x0A79EDD972332B8DD81E22157DAEE2096361B33D847EC1B30CFBFCEBCF0BE09F,
     0x06160C39ECC4C09035C6E4512D8D3461C2864EA569D2EDEBED904B228898EE9D),
)


class Fp2:
    """The operations of Fp2 that the group law needs."""
    one = (1, 0)

    @staticmethod
    def add(s, t):
        return (s[0] + t[0]) % P, (s[1] + t[1]) % P

    @staticmethod
    def sub(s, t):
        return (s[0] - t[0]) % P, (s[1] - t[1]) % P

    @staticmethod
    def mul(s, t):
        return (s[0] * t[0] - s[1] * t[1]) % P, (s[0] * t[1] + s[1] * t[0]) % P

    @staticmethod
    def inv(s):
        norm = pow(s[0] * s[0] + s[1] * s[1], -1, P)
        return s[0] * norm % P, -s[1] * norm % P


class Fp:
    """The operations of Fp that the group law needs."""
    one = 1

    @staticmethod
    def add(s, t):
        return (s + t) % P

    @staticmethod
    def sub(s, t):
        return (s - t) % P

    @staticmethod
    def mul(s, t):
        return s * t % P

    @staticmethod
    def inv(s):
        return pow(s, -1, P)


def slope(field, a, b):
    """The slope of the line through two points; None for a vertical line."""
    if a[0] != b[0]:
        return field.mul(field.sub(b[1], a[1]), field.inv(field.sub(b[0], a[0])))
    if a[1] != b[1]:
        return None
    square = field.mul(a[0], a[0])
    return field.mul(field.add(square, field.add(square, square)), field.inv(field.add(a[1], a[1])))


def add(a, b, field=Fp):
    if a is None or b is None:
        return a or b
    m = slope(field, a, b)
    if m is None:
        return None
    x = field.sub(field.sub(field.mul(m, m), a[0]), b[0])
    return x, field.sub(field.mul(m, field.sub(a[0], x)), a[1])


def times(scalar, point, field=Fp):
    """The multiple of a point. In the loop, (x, y, z) stands for (x/z², y/z³), which saves an inversion for each bit."""
    if point is None or scalar % N == 0:
        return None
    add, sub, mul = field.add, field.sub, field.mul
    x, y, z = *point, field.one
    for bit in bin(scalar % N)[3:]:
        xx, yy, yz = mul(x, x), mul(y, y), mul(y, z)
        slope, half = add(xx, add(xx, xx)), add(yy, yy)
        s = mul(add(x, x), half)
        x, z = sub(mul(slope, slope), add(s, s)), add(yz, yz)
        y = sub(mul(slope, sub(s, x)), mul(half, add(half, half)))
        if bit == "1":
            zz = mul(z, z)
            h, slope = sub(mul(point[0], zz), x), sub(mul(point[1], mul(zz, z)), y)
            hh = mul(h, h)
            hhh, s = mul(hh, h), mul(x, hh)
            x, z = sub(mul(slope, slope), add(hhh, add(s, s))), mul(z, h)
            y = sub(mul(slope, sub(s, x)), mul(y, hhh))
    inverse = field.inv(z)
    square = mul(inverse, inverse)
    return mul(x, square), mul(y, mul(square, inverse))


def negative(point):
    return None if point is None else (point[0], -point[1] % P)


def is_on_curve(point):
    x, y = point
    return max(x, y) < P and (y * y - x * x * x - 2) % P == 0


def encode(point):
    """A point of G1 in 65 bytes."""
    return b"\x04" + point[0].to_bytes(32, "big") + point[1].to_bytes(32, "big")


def decode(data):
    if len(data) != 65 or data[0] != 4:
        raise ValueError("no uncompressed point")
    point = int.from_bytes(data[1:33], "big"), int.from_bytes(data[33:], "big")
    if not is_on_curve(point):
        raise ValueError("not on the curve")
    return point


def hash_to_point(digest):
    """The first x from the digest on that belongs to a point of G1, with its even y."""
    x = int.from_bytes(digest, "big") % P
    while True:
        y = pow(x**3 + 2, (P + 1) // 4, P)
        if is_on_curve((x, y)):
            return x, (y if y % 2 == 0 else P - y)
        x = (x + 1) % P


# The pairing

def multiply(s, t):
    """The product in Fp12; quick when s has few coefficients."""
    c = [0] * 23
    for j, left in enumerate(s):
        if left:
            for k, right in enumerate(t, j):
                c[k] += left * right
    for k in range(22, 11, -1):  # w¹² = 2 w⁶ - 2
        c[k - 6] += 2 * c[k]
        c[k - 12] -= 2 * c[k]
    return [value % P for value in c[:12]]


def power(base, exponent):
    result = base
    for bit in bin(exponent)[3:]:
        result = multiply(result, result)
        if bit == "1":
            result = multiply(result, base)
    return result


# w^p, (w²)^p and so on: the power p is linear.
W_POWERS = [[1] + [0] * 11, power([0, 1] + [0] * 10, P)]
while len(W_POWERS) < 12:
    W_POWERS.append(multiply(W_POWERS[1], W_POWERS[-1]))


def frobenius(s):
    """s^p."""
    return [sum(value * image[k] for value, image in zip(s, W_POWERS)) % P for k in range(12)]


def line(m, t, q):
    """The line of slope m through t of G1, at q of G2: y w³ - y_t - m (x w² - x_t)."""
    value = [0] * 12
    (a, b), (c, d) = q
    value[0] = (m * t[0] - t[1]) % P
    value[2], value[8] = -m * (a - b) % P, -m * b % P
    value[3], value[9] = (c - d) % P, d
    return value


def miller(pairs):
    """The product of the functions with divisor N (p) - N (infinity), at q, up to factors that the last power removes."""
    f, multiples = [1] + [0] * 11, [p for p, _ in pairs]

    def step(index, other, q):
        nonlocal f
        t = multiples[index]
        m = slope(Fp, t, other)
        if m is None:
            multiples[index] = None
        else:
            f = multiply(line(m, t, q), f)
            x = (m * m - t[0] - other[0]) % P
            multiples[index] = x, (m * (t[0] - x) - t[1]) % P

    for bit in bin(N)[3:]:
        f = multiply(f, f)
        for index, (p, q) in enumerate(pairs):
            step(index, multiples[index], q)
            if bit == "1":
                step(index, p, q)
    return f


# Digits of (p⁴ - p² + 1)/N with the base p, the smallest first.
LAST_POWER = [(P**4 - P**2 + 1) // N // P**k % P for k in range(4)]


def product_is_one(pairs):
    """Whether the product of the pairings of pairs (point of G1, point of G2) is 1."""
    f = miller([(p, q) for p, q in pairs if p is not None and q is not None])
    # f^((p² + 1)(p⁴ - p² + 1)/N (p⁶ - 1)) = 1
    g = multiply(f, frobenius(frobenius(f)))
    products = [[1] + [0] * 11]
    for _ in LAST_POWER:
        products += [multiply(g, product) for product in products]
        g = frobenius(g)
    result = products[0]
    for bit in reversed(range(P.bit_length())):
        result = multiply(result, result)
        chosen = sum((digit >> bit & 1) << k for k, digit in enumerate(LAST_POWER))
        if chosen:
            result = multiply(result, products[chosen])
    # The power p⁶ changes the sign of w, so it leaves this number as it is when the odd coefficients are zero.
    return not any(result[1::2])

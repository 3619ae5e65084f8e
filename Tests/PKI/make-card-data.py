#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the data of the default virtual card and its test PKI.

    Tests/PKI/make-card-data.py            write everything
    Tests/PKI/make-card-data.py --check    write nothing; fail if a file differs

The script needs only Python 3.8 or later. Every key is derived from a seed, and every
signature is deterministic (RFC 6979), so a second run writes the same bytes. The private
keys are published and protect no real data.

Output files:
    Sources/Virtual/VirtualEID/DefaultCard.swift  files, keys and trust point of the card
    Tests/PKI/csca.der, ds.der                 X.509: country signer, document signer
    Tests/PKI/*.cvcert                         CV certificates: two roots, a link, a document verifier, a terminal
    Tests/PKI/*.p8                             PKCS #8 DER keys of the same names, and of the two sectors
    Tests/PKI/description.der                  the terminal's certificate description

Formats: TR-03110-3 appendix A (SecurityInfos), C (CV certificates), TR-03110-4 (data
groups), RFC 5652 (SignedData), RFC 5280 (X.509), RFC 5915 and 5958 (keys).
"""
import hashlib
import hmac
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SEED = b"badged virtual card, test keys, generation 1"

# ------------------------------------------------------------------ brainpoolP256r1

P = 0xA9FB57DBA1EEA9BC3E660A909D838D726E3BF623D52620282013481D1F6E5377
A = 0x7D5A0975FC2C3057EEF67530417AFFE7FB8055C126DC5C6CE94A4B44F330B5D9
B = 0x26DC5C6CE94A4B44F330B5D9BBD77CBF958416295CF7E1CE6BCCDC18FF8C07B6
N = 0xA9FB57DBA1EEA9BC3E660A909D838D718C397AA3B561A6F7901E0E82974856A7
G = (0x8BD2AEB9CB7E57CB2C4B482FFC81B7AFB9DE27E1E3BD23C23A4453BD9ACE3262,
     0x547EF835C3DAC4FD97F8461A14611DC9C27745132DED8E545C1D54C72F046997)
SIZE = 32
PARAMETER_ID = 13  # TR-03110-3 table 4


def add(p, q):
    if p is None or q is None:
        return p or q
    if p[0] == q[0]:
        if (p[1] + q[1]) % P == 0:
            return None
        slope = (3 * p[0] * p[0] + A) * pow(2 * p[1], -1, P) % P
    else:
        slope = (q[1] - p[1]) * pow(q[0] - p[0], -1, P) % P
    x = (slope * slope - p[0] - q[0]) % P
    return x, (slope * (p[0] - x) - p[1]) % P


def multiply(k, p=G):
    result = None
    while k:
        if k & 1:
            result = add(result, p)
        p = add(p, p)
        k >>= 1
    return result


def number(value):
    return value.to_bytes(SIZE, "big")


def point(p):
    return b"\x04" + number(p[0]) + number(p[1])


class Key:
    def __init__(self, name):
        digest = hashlib.sha512(SEED + b"/" + name.encode()).digest()
        self.name, self.d = name, int.from_bytes(digest, "big") % (N - 1) + 1
        self.q = multiply(self.d)

    def sign(self, data, hash_name="sha256"):
        """ECDSA with the nonce of RFC 6979; returns (r, s)."""
        digest = hashlib.new(hash_name, data).digest()
        e = int.from_bytes(digest, "big")
        e >>= max(0, len(digest) * 8 - N.bit_length())
        seed = number(self.d) + number(e % N)
        v, k = b"\x01" * len(digest), b"\x00" * len(digest)
        mac = lambda key, text: hmac.new(key, text, hash_name).digest()
        for separator in (b"\x00", b"\x01"):
            k = mac(k, v + separator + seed)
            v = mac(k, v)
        while True:
            t = b""
            while len(t) < SIZE:
                v = mac(k, v)
                t += v
            nonce = int.from_bytes(t[:SIZE], "big")
            if 0 < nonce < N:
                r = multiply(nonce)[0] % N
                return r, pow(nonce, -1, N) * (e + r * self.d) % N
            k = mac(k, v + b"\x00")
            v = mac(k, v)

    def plain_signature(self, data):
        r, s = self.sign(data)
        return number(r) + number(s)

    def der_signature(self, data):
        r, s = self.sign(data)
        return sequence(integer(r), integer(s))

    def pkcs8(self):
        private = sequence(integer(1), tlv(0x04, number(self.d)),
                           tlv(0xA1, tlv(0x03, b"\x00" + point(self.q))))
        return sequence(integer(0), EC_ALGORITHM, tlv(0x04, private))

    def subject_public_key_info(self):
        return sequence(EC_ALGORITHM, tlv(0x03, b"\x00" + point(self.q)))


# ------------------------------------------------------------------------------ DER

def tlv(tag, *parts):
    value = b"".join(parts)
    if len(value) < 128:
        length = bytes([len(value)])
    else:
        body = len(value).to_bytes((len(value).bit_length() + 7) // 8, "big")
        length = bytes([0x80 | len(body)]) + body
    return tag.to_bytes((tag.bit_length() + 7) // 8, "big") + length + value


def sequence(*parts):
    return tlv(0x30, *parts)


def set_of(*parts):
    return tlv(0x31, *sorted(parts))


def integer(value):
    return tlv(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def oid(dotted):
    arcs = [int(x) for x in dotted.split(".")]
    out = b""
    for arc in [arcs[0] * 40 + arcs[1], *arcs[2:]]:
        chunk = [arc & 0x7F]
        while arc := arc >> 7:
            chunk.insert(0, arc & 0x7F | 0x80)
        out += bytes(chunk)
    return tlv(0x06, out)


def utf8(text):
    return tlv(0x0C, text.encode())


def printable(text):
    return tlv(0x13, text.encode("ascii"))


def numeric(text):
    return tlv(0x12, text.encode("ascii"))


def ia5(text):
    return tlv(0x16, text.encode("ascii"))


EC_ALGORITHM = sequence(oid("1.2.840.10045.2.1"), oid("1.3.36.3.3.2.8.1.1.7"))
ECDSA_SHA256 = sequence(oid("1.2.840.10045.4.3.2"))
SHA256 = sequence(oid("2.16.840.1.101.3.4.2.1"))
BSI = "0.4.0.127.0.7"

# ---------------------------------------------------------------- X.509 and the CMS


def name(common):
    attribute = lambda number, value: set_of(sequence(oid("2.5.4." + str(number)), value))
    return sequence(attribute(6, printable("DE")), attribute(10, utf8("badged test")), attribute(3, utf8(common)))


def certificate(serial, issuer, issuer_key, subject, subject_key, extensions):
    body = sequence(
        tlv(0xA0, integer(2)), integer(serial), ECDSA_SHA256, name(issuer),
        sequence(tlv(0x17, b"240101000000Z"), tlv(0x17, b"491231235959Z")),
        name(subject), subject_key.subject_public_key_info(), tlv(0xA3, sequence(*extensions)))
    return sequence(body, ECDSA_SHA256, tlv(0x03, b"\x00", issuer_key.der_signature(body)))


def extension(number, critical, value):
    return sequence(oid("2.5.29." + str(number)), *([tlv(0x01, b"\xff")] if critical else []), tlv(0x04, value))


def key_identifier(key):
    return hashlib.sha1(point(key.q)).digest()


CSCA, DS = Key("csca"), Key("ds")
CSCA_CERTIFICATE = certificate(1, "Test CSCA", CSCA, "Test CSCA", CSCA, [
    extension(19, True, sequence(tlv(0x01, b"\xff"), integer(0))),
    extension(15, True, tlv(0x03, b"\x01\x06")),
    extension(14, False, tlv(0x04, key_identifier(CSCA))),
])
DS_CERTIFICATE = certificate(2, "Test CSCA", CSCA, "Test Document Signer", DS, [
    extension(15, True, tlv(0x03, b"\x07\x80")),
    extension(14, False, tlv(0x04, key_identifier(DS))),
    extension(35, False, sequence(tlv(0x80, key_identifier(CSCA)))),
])


def signed_data(content_type, content):
    attributes = set_of(
        sequence(oid("1.2.840.113549.1.9.3"), set_of(oid(content_type))),
        sequence(oid("1.2.840.113549.1.9.4"), set_of(tlv(0x04, hashlib.sha256(content).digest()))))
    signer = sequence(
        integer(3), tlv(0x80, key_identifier(DS)), SHA256, tlv(0xA0, attributes[2:]),
        ECDSA_SHA256, tlv(0x04, DS.der_signature(attributes)))
    data = sequence(
        integer(3), set_of(SHA256), sequence(oid(content_type), tlv(0xA0, tlv(0x04, content))),
        tlv(0xA0, DS_CERTIFICATE), set_of(signer))
    return sequence(oid("1.2.840.113549.1.7.2"), tlv(0xA0, data))


# ------------------------------------------------------------------------ the card

def picture(length):
    """Returns a JPEG 2000 signature box and xorshift32 noise, as DefaultCard.swift does at run time."""
    out = bytearray.fromhex("0000000C6A5020200D0A870A")
    x = PICTURE_SEED
    while len(out) < length:
        x ^= x << 13 & 0xFFFFFFFF
        x ^= x >> 17
        x ^= x << 5 & 0xFFFFFFFF
        out.append(x >> 24)
    return bytes(out)


PICTURE_SEED = 0x65494421
PICTURE_LENGTH = 30_000

CARD_KEYS = {1: Key("ri-1"), 2: Key("ri-2"), 41: Key("ca-41"), 45: Key("ca-45")}

#: Data groups of the eID application, TR-03110-4 2.2: short file id -> content. The holder is invented.
GROUPS = {
    0x01: tlv(0x61, printable("ID")),
    0x02: tlv(0x62, printable("D")),
    0x03: tlv(0x63, numeric("20390531")),
    0x04: tlv(0x64, utf8("JÖRDIS AMALIA")),
    0x05: tlv(0x65, utf8("WEIẞENBÖCK")),
    0x06: tlv(0x66, utf8("")),
    0x07: tlv(0x67, utf8("")),
    0x08: tlv(0x68, numeric("19870923")),
    0x09: tlv(0x69, tlv(0xA1, utf8("GÖTTINGEN"))),
    0x0A: tlv(0x6A, printable("D")),
    0x0B: tlv(0x6B, printable("F")),
    0x0C: tlv(0x6C, set_of(sequence(oid("2.25.7319"), utf8("TEST")))),
    0x0D: tlv(0x6D, utf8("LÜTJOHANN")),
    0x0E: None,
    0x0F: tlv(0x6F, numeric("20290601")),
    0x11: tlv(0x71, sequence(tlv(0xAA, utf8("AM MÜHLENBACH 3")), tlv(0xAB, utf8("LÜBECK")),
                             tlv(0xAD, printable("D")), tlv(0xAE, printable("23552")))),
    0x12: tlv(0x72, tlv(0x04, bytes.fromhex("02760100030000"))),
    0x13: tlv(0x73, tlv(0xA1, utf8("TEST PERMIT I"))),
    0x14: tlv(0x74, tlv(0xA1, utf8("TEST PERMIT II"))),
    0x15: tlv(0x75, ia5("tel:+49-451-5550123")),
    0x16: tlv(0x76, ia5("joerdis@weissenboeck.example")),
}

EF_DIR = b"".join([
    tlv(0x61, tlv(0x4F, bytes.fromhex("E828BD080FA000000167455349474E")), tlv(0x50, b"CIA zu DF.eSign"),
        tlv(0x51), tlv(0x73, tlv(0x4F, bytes.fromhex("A000000167455349474E")))),
    tlv(0x61, tlv(0x4F, bytes.fromhex("A0000002471001"))),
    tlv(0x61, tlv(0x4F, bytes.fromhex("E80704007F00070302"))),
    tlv(0x61, tlv(0x4F, bytes.fromhex("A000000167455349474E"))),
])

DOMAIN = sequence(oid(BSI + ".1.2"), integer(PARAMETER_ID))


def chip_authentication(key_id):
    return [sequence(oid(BSI + ".2.2.3.2.2"), integer(2), integer(key_id)),
            sequence(oid(BSI + ".2.2.3.2"), DOMAIN, integer(key_id))]


def public_key_info(key_id):
    key = sequence(DOMAIN, tlv(0x03, b"\x00" + point(CARD_KEYS[key_id].q)))
    return sequence(oid(BSI + ".2.2.1.2"), key, integer(key_id))


def privileged(*infos):
    return sequence(oid(BSI + ".2.2.8"), set_of(*infos))


COMMON = [
    sequence(oid(BSI + ".2.2.4.2.2"), integer(2), integer(PARAMETER_ID)),  # PACE, generic mapping, AES-128
    sequence(oid(BSI + ".2.2.2"), integer(2)),                             # terminal authentication
    *chip_authentication(41),
]
LOCATOR = sequence(oid(BSI + ".2.2.6"), ia5("https://badged.example/cardinfo"))
EF_CARD_ACCESS = set_of(*COMMON, privileged(*chip_authentication(45)), LOCATOR)


def restricted_identification(key_id, authorised_only):
    parameters = sequence(integer(1), integer(key_id), tlv(0x01, b"\xff" if authorised_only else b"\x00"))
    return sequence(oid(BSI + ".2.2.5.2.3"), parameters)


def group_content(short_id):
    return GROUPS[short_id] or tlv(0x6E, tlv(0x04, picture(PICTURE_LENGTH)))


def card_security():
    hashes = sequence(*(sequence(integer(i), tlv(0x04, hashlib.sha256(group_content(i)).digest()))
                        for i in sorted(GROUPS)))
    infos = set_of(
        *COMMON, LOCATOR, public_key_info(41),
        privileged(*chip_authentication(45), public_key_info(45)),
        restricted_identification(1, False), restricted_identification(2, True),
        sequence(oid(BSI + ".2.2.5.2"), DOMAIN),
        sequence(oid(BSI + ".2.2.7"), sequence(SHA256, hashes)))
    return signed_data(BSI + ".3.2.1", infos)


# -------------------------------------------------------------- CV certificates

TA_SHA256 = oid(BSI + ".2.2.2.2.3")
RI_SHA256 = oid(BSI + ".2.2.5.2.3")
AT = oid(BSI + ".3.1.2.2")
ALL_RIGHTS = (1 << 38) - 1
#: All rights except install rights (7, 6), PIN management (5), CAN allowed (4), privileged terminal (3), writing.
TERMINAL_RIGHTS = sum(1 << b for b in [*range(8, 30), 2, 1, 0])
FROM, TO = "240101", "391231"


def public_key(key, algorithm, parameters):
    explicit = [tlv(0x81, number(P)), tlv(0x82, number(A)), tlv(0x83, number(B)), tlv(0x84, point(G)),
                tlv(0x85, number(N))] if parameters else []
    return tlv(0x7F49, algorithm, *explicit, tlv(0x86, point(key.q)), *([tlv(0x87, b"\x01")] if parameters else []))


def chat(role, rights):
    return tlv(0x7F4C, AT, tlv(0x53, (role << 38 | rights).to_bytes(5, "big")))


def date(text):
    return bytes(int(c) for c in text)


def cv_certificate(authority, signer, holder, key, role, rights, extensions=b""):
    body = tlv(0x7F4E, tlv(0x5F29, b"\x00"), tlv(0x42, authority.encode()),
               public_key(key, TA_SHA256, role == 3), tlv(0x5F20, holder.encode()), chat(role, rights),
               tlv(0x5F25, date(FROM)), tlv(0x5F24, date(TO)), extensions)
    return tlv(0x7F21, body, tlv(0x5F37, signer.plain_signature(body)))


CVCA, CVCA_NEXT, DV, TERMINAL = Key("cvca"), Key("cvca-next"), Key("dv"), Key("terminal")
SECTORS = [Key("sector-1"), Key("sector-2")]
CVCA_NAME, CVCA_NEXT_NAME = "DETESTeIDBG00001", "DETESTeIDBG00002"
DV_NAME, TERMINAL_NAME = "DEDVBADGED00001", "DEATBADGED00001"


def description():
    explicit = lambda number, inner: tlv(0xA0 | number, inner)
    terms = ("Name, Anschrift und E-Mail-Adresse des Diensteanbieters:\nTestdienst\nAm Prüfstand 1\n"
             "00000 Beispielstadt\nkontakt@dienst.example\n\nGeschäftszweck:\nTest\n")
    return sequence(oid(BSI + ".3.1.3.1.1"), explicit(1, utf8("badged test DV")),
                    explicit(2, printable("https://dv.example")), explicit(3, utf8("Testdienst")),
                    explicit(4, printable("https://dienst.example")), explicit(5, utf8(terms)))


def terminal_extensions():
    sectors = [hashlib.sha256(public_key(key, RI_SHA256, True)).digest() for key in SECTORS]
    return tlv(0x65,
               tlv(0x73, oid(BSI + ".3.1.3.1"), tlv(0x80, hashlib.sha256(description()).digest())),
               tlv(0x73, oid(BSI + ".3.1.3.2"), tlv(0x80, sectors[0]), tlv(0x81, sectors[1])))


CV = {
    "cvca": cv_certificate(CVCA_NAME, CVCA, CVCA_NAME, CVCA, 3, ALL_RIGHTS),
    "cvca-next": cv_certificate(CVCA_NEXT_NAME, CVCA_NEXT, CVCA_NEXT_NAME, CVCA_NEXT, 3, ALL_RIGHTS),
    "link": cv_certificate(CVCA_NAME, CVCA, CVCA_NEXT_NAME, CVCA_NEXT, 3, ALL_RIGHTS),
    "dv": cv_certificate(CVCA_NAME, CVCA, DV_NAME, DV, 2, ALL_RIGHTS),
    "dv-next": cv_certificate(CVCA_NEXT_NAME, CVCA_NEXT, DV_NAME, DV, 2, ALL_RIGHTS),
    "terminal": cv_certificate(DV_NAME, DV, TERMINAL_NAME, TERMINAL, 0, TERMINAL_RIGHTS, terminal_extensions()),
}

# -------------------------------------------------------------------------- output

SWIFT = '''\
// SPDX-License-Identifier: GPL-3.0-or-later
// Generated by Tests/PKI/make-card-data.py; change that script, not this file.

/// The default card of a virtual reader: an invented holder, a test authority, and keys that are public.
enum DefaultCard {{
    /// The identifier, the short identifier and the content in hexadecimal digits.
    typealias File = (fileID: UInt16, shortFileID: UInt8, content: String)

    /// EF.DIR, EF.CardAccess and EF.CardSecurity, which every virtual card has.
    static let mandatoryFiles: [File] = [
{mandatory}
    ]

    /// The data groups of the eID application except group 14. TR-03110-4.
    static let dataGroups: [File] = [
{groups}
    ]

    /// Data group 14: an OCTET STRING with a JPEG 2000 signature box and random bytes, {picture_length} bytes in all.
    static var signatureImage: [UInt8] {{
        var image: [UInt8] = [0, 0, 0, 0x0C, 0x6A, 0x50, 0x20, 0x20, 0x0D, 0x0A, 0x87, 0x0A]
        image.reserveCapacity({picture_length})
        var x: UInt32 = {picture_seed}
        while image.count < {picture_length} {{
            x ^= x << 13
            x ^= x >> 17
            x ^= x << 5
            image.append(UInt8(truncatingIfNeeded: x >> 24))
        }}
        return [{picture_header}] + image
    }}

    /// Keys in PKCS #8. 1 and 2 are for restricted identification, 41 for chip authentication, 45 for chip authentication
    /// of privileged terminals.
    static let keys: [(id: Int, content: String)] = [
{keys}
    ]

    /// The trust point: a self-signed certificate of {cvca}.
    static let cvca =
{root}

    /// The MRZ as a password: document number, date of birth and date of expiry, each with its check digit.
    static let machineReadableZone = "{mrz}"
}}
'''


def literal(data, indent):
    text, pad = data.hex().upper(), " " * indent
    lines = [text[i:i + 100] for i in range(0, len(text), 100)]
    return f'{pad}"""\n' + "\\\n".join(pad + line for line in lines) + f'\n{pad}"""'


def check_digit(text):
    value = lambda c: 0 if c == "<" else int(c, 36)
    return text + str(sum(value(c) * (7, 3, 1)[i % 3] for i, c in enumerate(text)) % 10)


def swift():
    def file(file_id, short_id, content):
        return f"        (\n            0x{file_id:04X}, 0x{short_id:02X},\n{literal(content, 12)}\n        ),"

    picture_header = tlv(0x6E, tlv(0x04, bytes(PICTURE_LENGTH)))[:-PICTURE_LENGTH]
    keys = (f"        (\n            {i},\n{literal(k.pkcs8(), 12)}\n        )," for i, k in CARD_KEYS.items())
    return SWIFT.format(
        mandatory="\n".join([file(0x2F00, 0x1E, EF_DIR), file(0x011C, 0x1C, EF_CARD_ACCESS),
                             file(0x011D, 0x1D, card_security())]),
        groups="\n".join(file(0x0100 | i, i, c) for i, c in GROUPS.items() if c),
        keys="\n".join(keys), root=literal(CV["cvca"], 8), cvca=CVCA_NAME,
        picture_length=f"{PICTURE_LENGTH:_}", picture_seed=f"0x{PICTURE_SEED:08X}",
        picture_header=", ".join(f"0x{b:02X}" for b in picture_header),
        mrz=check_digit("LZ6311T47") + check_digit("870923") + check_digit("390531"))


def outputs():
    pki = ROOT / "Tests/PKI"
    yield ROOT / "Sources/Virtual/VirtualEID/DefaultCard.swift", swift().encode()
    yield pki / "csca.der", CSCA_CERTIFICATE
    yield pki / "ds.der", DS_CERTIFICATE
    yield pki / "description.der", description()
    for stem, content in CV.items():
        yield pki / f"{stem}.cvcert", content
    for key in (CSCA, DS, CVCA, CVCA_NEXT, DV, TERMINAL, *SECTORS):
        yield pki / f"{key.name}.p8", key.pkcs8()


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    stale = []
    for path, content in outputs():
        if not check:
            path.write_bytes(content)
        elif not path.exists() or path.read_bytes() != content:
            stale.append(path.relative_to(ROOT))
    if stale:
        sys.exit("files differ from the output of this script: " + ", ".join(map(str, stale)))


if __name__ == "__main__":
    main()

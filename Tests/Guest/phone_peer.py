# SPDX-License-Identifier: GPL-3.0-or-later
"""A phone with mobile documents beside a Bluetooth controller of the guest. Its stack is bumble, of PyPI; its documents,
their issuer and the session (ISO/IEC 18013-5) share nothing with badged.

The kernel gets a controller on /dev/vhci. Phones, strangers and a door reader sit on other controllers of the same link, which
delivers at once. The program reads one JSON command per line and answers each with one line; `Phone` of `phones.py` uses it.

{"door": {...}}         advertises a door reader, as in `guest.pkoc`
{"show": "central"}     a phone shows a new QR code. central: it searches the reader; peripheral: it advertises. Further members:
                        portrait: the bytes of a portrait; strangers: how often a stranger is faster than the phone; fault: "leaves"
                        in the middle of the answer, "absent": only the strangers come
{}                      the state of the kernel's controller, and what was played
"""
import asyncio
import base64
import datetime
import hashlib
import json
import os
import sys
import uuid

import cbor2
from bumble.controller import Controller
from bumble.core import UUID, AdvertisingData
from bumble.device import Device, Peer
from bumble.gatt import Characteristic, CharacteristicValue, Service
from bumble.hci import Address, LeFeatureMask
from bumble.host import Host
from bumble.link import LocalLink
from bumble.transport import open_transport
from cbor2 import CBORTag
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID, ObjectIdentifier

CURVE = ec.SECP256R1()
AGE, LICENCE, LICENCE_SPACE = "eu.europa.ec.av.1", "org.iso.18013.5.1.mDL", "org.iso.18013.5.1"
DOCUMENT_SIGNER = ObjectIdentifier("1.0.18013.5.1.2")
ES256, X5CHAIN = -7, 33
EVERY = 100  # milliseconds between advertisements
EVENT = 0.015 # seconds between connection events
SPEED = 90_000  # bytes in a second, as with long packets and 1 Mbit/s
ADAPTER, PHONE, STRANGER = "00:AA:EE:00:00:01", "F0:F1:F2:F3:F4:F5", "E0:E1:E2:E3:E4:E5"
START, END = b"\1", b"\2"


def characteristic(number):
    return UUID(f"0000000{number}-A123-48CE-896B-4C76973373E6")


# Documents


def name(text):
    return x509.Name([x509.NameAttribute(NameOID.COUNTRY_NAME, "UT"), x509.NameAttribute(NameOID.COMMON_NAME, text)])


def certificate(subject, key, authority, authority_key):
    """A certificate of an authority if it is signed with its own key, else of a signer of documents."""
    is_authority = key is authority_key
    usages = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "key_cert_sign",
              "crl_sign", "encipher_only", "decipher_only")
    own = ("key_cert_sign", "crl_sign") if is_authority else ("digital_signature",)
    now, day = datetime.datetime.now(datetime.timezone.utc), datetime.timedelta(days=1)
    extensions = [(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False),
                  (x509.KeyUsage(**{usage: usage in own for usage in usages}), True),
                  (x509.IssuerAlternativeName([x509.UniformResourceIdentifier("https://utopia.example")]), False)]
    if is_authority:
        extensions.append((x509.BasicConstraints(True, 0), True))
    else:
        place = x509.DistributionPoint([x509.UniformResourceIdentifier("https://utopia.example/crl")], None, None, None)
        extensions += [(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), False),
                       (x509.ExtendedKeyUsage([DOCUMENT_SIGNER]), True), (x509.CRLDistributionPoints([place]), False)]
    builder = x509.CertificateBuilder(name(authority), name(subject), key.public_key(), x509.random_serial_number(),
                                      now - 40 * day, now + 400 * day)
    for extension, is_critical in extensions:
        builder = builder.add_extension(extension, is_critical)
    return builder.sign(authority_key, hashes.SHA256()).public_bytes(Encoding.DER)


def embed(value):
    return CBORTag(24, cbor2.dumps(value))


def cose_key(key):
    numbers = key.public_key().public_numbers()
    return {1: 2, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}


def cose_sign(key, payload, detached=None, unprotected=None):
    protected = cbor2.dumps({1: ES256})
    signed = cbor2.dumps(["Signature1", protected, b"", payload if detached is None else detached])
    r, s = decode_dss_signature(key.sign(signed, ec.ECDSA(hashes.SHA256())))
    return [protected, unprotected or {}, payload, r.to_bytes(32, "big") + s.to_bytes(32, "big")]


class Issuer:
    """An authority and its signer of documents."""

    def __init__(self):
        key, self.key = ec.generate_private_key(CURVE), ec.generate_private_key(CURVE)
        self.authority = certificate("Utopia authority", key, "Utopia authority", key)
        self.signer = certificate("Utopia signer", self.key, "Utopia authority", key)


class Document:
    """A document with the key of its phone."""

    def __init__(self, issuer, kind, space, values):
        self.kind, self.space, self.key = kind, space, ec.generate_private_key(CURVE)
        self.items = {element: embed({"digestID": number, "random": os.urandom(32), "elementIdentifier": element,
                                      "elementValue": value}) for number, (element, value) in enumerate(values.items())}
        digests = {number: hashlib.sha256(cbor2.dumps(item)).digest() for number, item in enumerate(self.items.values())}
        now, day = datetime.datetime.now(datetime.timezone.utc), datetime.timedelta(days=1)
        signed, end = (CBORTag(0, when.strftime("%Y-%m-%dT%H:%M:%SZ")) for when in (now - day, now + 30 * day))
        security = {"version": "1.0", "digestAlgorithm": "SHA-256", "valueDigests": {space: digests},
                    "deviceKeyInfo": {"deviceKey": cose_key(self.key)}, "docType": kind,
                    "validityInfo": {"signed": signed, "validFrom": signed, "validUntil": end}}
        self.signature = cose_sign(issuer.key, cbor2.dumps(embed(security)), unprotected={X5CHAIN: issuer.signer})

    def answer(self, asked, transcript):
        """What the phone gives for a request."""
        given = [self.items[element] for element in asked.get(self.space, {}) if element in self.items]
        own = embed({})
        signed = cbor2.dumps(embed(["DeviceAuthentication", transcript, self.kind, own]))
        return {"docType": self.kind, "issuerSigned": {"nameSpaces": {self.space: given}, "issuerAuth": self.signature},
                "deviceSigned": {"nameSpaces": own, "deviceAuth": {"deviceSignature": cose_sign(self.key, None, signed)}}}


class Wallet:
    """One session of a wallet; its holder agrees at once."""

    def __init__(self, documents, mode):
        self.documents, self.key, self.service = documents, ec.generate_private_key(CURVE), uuid.uuid4().bytes
        self.key_bytes = embed(cose_key(self.key))
        is_central = mode == "central"
        way = [2, 1, {0: not is_central, 1: is_central, 11 if is_central else 10: self.service}]
        self.engagement = cbor2.dumps({0: "1.0", 1: [1, self.key_bytes], 2: [way]})

    def code(self):
        """The text of the QR code."""
        return "mdoc:" + base64.urlsafe_b64encode(self.engagement).decode().rstrip("=")

    def ident(self):
        return HKDF(hashes.SHA256(), 16, b"", b"BLEIdent").derive(cbor2.dumps(self.key_bytes))

    def answer(self, message):
        """The answer to the message that begins the session."""
        message = cbor2.loads(message)
        reader_key = message["eReaderKey"]
        numbers = cbor2.loads(reader_key.value)
        point = b"\4" + numbers[-2] + numbers[-3]
        secret = self.key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(CURVE, point))
        transcript = [CBORTag(24, self.engagement), reader_key, None]
        salt = hashlib.sha256(cbor2.dumps(embed(transcript))).digest()
        ours, theirs = (AESGCM(HKDF(hashes.SHA256(), 32, salt, info).derive(secret)) for info in (b"SKDevice", b"SKReader"))
        request = cbor2.loads(theirs.decrypt(bytes(11) + b"\1", message["data"], None))
        given = []
        for one in request["docRequests"]:
            items = cbor2.loads(one["itemsRequest"].value)
            given += [document.answer(items["nameSpaces"], transcript) for document in self.documents
                      if document.kind == items["docType"]]
        response = cbor2.dumps({"version": "1.0", "documents": given, "status": 0})
        return cbor2.dumps({"data": ours.encrypt(bytes(7) + b"\1" + bytes(3) + b"\1", response, None)})


# Bluetooth


class Link(LocalLink):
    """What is sent arrives in order, after the next connection event, and at the speed of Bluetooth LE. The link of bumble delivers
    at once, and takes the random address of a controller for the sender of its packets; the kernel sends from others."""

    def __init__(self):
        super().__init__()
        # When each receiver has received what was sent.
        self.busy = {}

    def deliver(self, receiver, size, *call):
        loop = asyncio.get_running_loop()
        event = (loop.time() // EVENT + 1) * EVENT
        self.busy[receiver] = max(event, self.busy.get(receiver, 0)) + size / SPEED
        loop.call_at(self.busy[receiver], *call)

    def send_acl_data(self, sender_controller, destination_address, transport, data):
        connection = sender_controller.le_connections.get(destination_address)
        receiver = self.find_le_controller(destination_address)
        if connection and receiver:
            self.deliver(receiver, len(data), receiver.on_link_acl_data, connection.self_address, transport, data)

    def send_ll_control_pdu(self, sender_address, receiver_address, packet):
        if receiver := self.find_le_controller(receiver_address):
            self.deliver(receiver, 1, receiver.on_ll_control_pdu, sender_address, packet)


async def device(link, address):
    """A device of bumble on a controller of its own."""
    host = Host()
    host.controller = Controller(address, link=link, public_address=address)
    made = Device(address, Address(address), host=host)
    await made.power_on()
    return made


async def advertise(sender, data):
    await sender.start_advertising(advertising_data=data, auto_restart=False, advertising_interval_min=EVERY,
                                   advertising_interval_max=EVERY)


class KernelController(Controller):
    """For two features the kernel waits for LE Enhanced Connection Complete, which bumble does not send."""
    le_features = Controller.le_features & ~(LeFeatureMask.LL_PRIVACY | LeFeatureMask.LE_EXTENDED_ADVERTISING)



class End:
    """What both modes share: messages in parts, and the end of the connection."""

    def __init__(self, sender, service):
        self.device, self.service = sender, UUID(str(uuid.UUID(bytes=service)).upper())
        # None among the messages is the end of the session.
        self.parts, self.messages, self.disconnected = b"", asyncio.Queue(), asyncio.Event()

    def use(self, connection):
        self.connection = connection
        connection.on("disconnection", self.leave)

    def leave(self, reason):
        self.messages.put_nowait(None)
        self.disconnected.set()

    def take_state(self, value):
        if value == END:
            self.messages.put_nowait(None)

    def take(self, value):
        self.parts += value[1:]
        if value[:1] == b"\0":
            self.messages.put_nowait(self.parts)
            self.parts = b""

    async def send(self, message, most=None):
        """Sends a message, or only so many of its parts."""
        size = min(self.connection.att_mtu - 3, 512) - 1
        starts = range(0, len(message), size)
        for start in starts[:most]:
            await self.write((b"\0" if start == starts[-1] else b"\1") + message[start:start + size])


class Server(End):
    """Peripheral server mode: the reader connects."""

    async def connect(self, ident):
        started = asyncio.get_running_loop().create_future()

        def change(connection, value):
            if value == START and not started.done():
                started.set_result(connection)
            self.take_state(value)

        kinds, access = Characteristic.Properties, Characteristic.Permissions
        state = Characteristic(characteristic(1), kinds.NOTIFY | kinds.WRITE_WITHOUT_RESPONSE, access.WRITEABLE,
                               CharacteristicValue(write=change))
        to_phone = Characteristic(characteristic(2), kinds.WRITE_WITHOUT_RESPONSE, access.WRITEABLE,
                                  CharacteristicValue(write=lambda connection, value: self.take(value)))
        self.from_phone = Characteristic(characteristic(3), kinds.NOTIFY, access.READABLE, b"")
        self.device.add_service(Service(self.service, [state, to_phone, self.from_phone]))
        data = AdvertisingData([(AdvertisingData.FLAGS, b"\6"),
                                (AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS, bytes(self.service))])
        await advertise(self.device, bytes(data))
        self.use(await started)

    async def write(self, value):
        await self.device.notify_subscriber(self.connection, self.from_phone, value)


class Client(End):
    """Central client mode: the phone connects to the reader."""

    async def connect(self, ident):
        found = asyncio.get_running_loop().create_future()

        def see(advertisement):
            if bytes(self.service) in bytes(advertisement.data_bytes) and not found.done():
                found.set_result(advertisement.address)

        self.device.on("advertisement", see)
        await self.device.start_scanning(filter_duplicates=False)
        address = await found
        await self.device.stop_scanning()
        self.use(await self.device.connect(address))
        peer = self.peer = Peer(self.connection)
        await peer.request_mtu(515)
        await peer.discover_services()
        service = next(one for one in peer.services if one.uuid == self.service)
        await service.discover_characteristics()
        known = {one.uuid: one for one in service.characteristics}
        if bytes(await peer.read_value(known[characteristic(8)])) != ident:
            raise RuntimeError("the reader does not know the key of the phone")
        state, self.from_phone = known[characteristic(5)], known[characteristic(6)]
        await peer.subscribe(state, self.take_state)
        await peer.subscribe(known[characteristic(7)], self.take)
        await peer.write_value(state, START, with_response=False)

    async def write(self, value):
        await self.peer.write_value(self.from_phone, value, with_response=False)


class Played:
    """The kernel's controller and what is around it."""

    def __init__(self, kernel, link):
        self.kernel, self.link = kernel, link
        self.issuer = Issuer()
        # What phones and strangers have done, and who is there.
        self.story, self.phone, self.door = [], None, None

    async def visit(self, address, wallet, mode, respond):
        """One connection: `respond` gets the message of the reader. Ends when the connection has ended."""
        visitor = await device(self.link, address)
        try:
            end = (Client if mode == "central" else Server)(visitor, wallet.service)
            await end.connect(wallet.ident())
            message = await end.messages.get()
            if message is not None:
                await respond(end, message)
            # The reader ends the connection.
            await end.disconnected.wait()
        finally:
            await visitor.stop_advertising()
            self.link.remove_controller(visitor.host.controller)

    async def play(self, wallet, mode, strangers, fault):
        async def disturb(end, message):
            self.story.append("stranger")
            await end.send(b"\xff" * 64)

        async def respond(end, message):
            self.story.append("phone")
            answer = wallet.answer(message)
            if fault == "leaves":
                await end.send(answer, most=1)
                await end.connection.disconnect()
            else:
                await end.send(answer)

        for _ in range(strangers):
            await self.visit(STRANGER, wallet, mode, disturb)
        if fault != "absent":
            await self.visit(PHONE, wallet, mode, respond)

    def show(self, mode, portrait=0, strangers=0, fault=None):
        if self.phone:
            self.phone.cancel()
        values = {"family_name": "Eriksson", "portrait": b"\xff\xd8\xff\xe0" + os.urandom(portrait) + b"\xff\xd9",
                  "issuing_country": "UT", "age_over_18": True}
        documents = [Document(self.issuer, AGE, AGE, {"age_over_18": True}), Document(self.issuer, LICENCE, LICENCE_SPACE, values)]
        wallet = Wallet(documents, mode)
        self.story = []
        self.phone = asyncio.create_task(self.play(wallet, mode, strangers, fault))
        self.phone.add_done_callback(lambda task: task.cancelled() or self.story.append(repr(task.exception() or "end")))
        return {"code": wallet.code(), "authority": self.issuer.authority.hex()}

    async def execute(self, command):
        if "show" in command:
            return self.show(command.pop("show"), **command)
        if "door" in command:
            self.door = await device(self.link, command["door"]["address"])
            await advertise(self.door, bytes.fromhex(command["door"]["data"]))
        return {"advertises": self.kernel.is_advertising, "links": len(self.kernel.le_connections), "story": self.story}


async def main():
    link = Link()
    async with await open_transport("vhci") as transport:
        played = Played(KernelController("kernel", transport.source, transport.sink, link=link, public_address=ADAPTER), link)
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        while line := await lines.readline():
            print(json.dumps(await played.execute(json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(main())

// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Document
import MdocFeature
import MobileDocument
import Text

/// CBOR of strangers: each item in an accepted one is read to its end.
@Sendable func cborItem(_ input: UnsafeRawBufferPointer) {
    let bytes = Array(input)
    guard let item = try? CBOR(bytes) else { return }
    require(item.encoded == bytes, "the bytes of an item differ from those that were read")
    require(walk(item) <= 1 << 16, "more items than allowed")
}

/// Reads an item and all its parts, and returns how many there are.
private func walk(_ item: CBOR) -> Int {
    var count = 1
    switch item.kind {
    case .array: for part in item.array ?? [] { count += walk(part) }
    case .map: for (key, value) in item.map ?? [] { count += walk(key) + walk(value) }
    case .tag: if let content = item.tagged?.content { count += walk(content) }
    case .text: require(item.text != nil, "a text that is none")
    case .bytes: require(item.bytes != nil, "a byte string that is none")
    case .unsigned: require(item.unsigned != nil, "a number that is none")
    case .negative, .bool, .null, .float, .simple: break
    }
    return count
}

/// What a phone shows: an engagement, a QR code, both NFC messages.
@Sendable func mdocEngagement(_ input: UnsafeRawBufferPointer) {
    let bytes = Array(input)
    if let engagement = try? DeviceEngagement(bytes) {
        require(engagement.encoded == bytes, "the engagement has other bytes")
        require((try? MdocSession.ident(engagement))?.count == 16, "an Ident of another length")
    }
    _ = try? DeviceEngagement(qr: String(decoding: bytes, as: UTF8.self))
    _ = try? TNEPService(in: bytes)
    try? TNEPService.checkStatus(bytes)
    _ = try? HandoverRequest(bytes)
    if let select = try? HandoverSelect(bytes, request: nil) {
        require(!select.ways.isEmpty, "a handover without a way")
    }
}

private let phone: (engagement: DeviceEngagement, binding: MdocBinding)? = {
    guard let group = try? Curve.secp256r1.group, let key = try? ECPrivateKey(on: group).publicKey,
        let bytes = try? DeviceEngagement.encoding(key: key, ways: []), let engagement = try? DeviceEngagement(bytes),
        let session = try? MdocSession(engagement, .qr)
    else { return nil }
    return (engagement, session.binding)
}()

/// A message of the session before it is decrypted, and the request of a reader.
@Sendable func mdocMessage(_ input: UnsafeRawBufferPointer) {
    guard let phone else { return require(false, "there is no session") }
    let bytes = Array(input)
    if var session = try? MdocSession(phone.engagement, .qr) { _ = try? session.read(bytes) }
    if let request = try? DeviceRequest.Received(Secret(bytes)) {
        require(!request.request.documents.isEmpty, "a request for nothing")
    }
}

/// A decrypted response with all its checks. A response of nobody is never genuine.
@Sendable func mdocResponse(_ input: UnsafeRawBufferPointer) {
    guard let phone else { return require(false, "there is no session") }
    guard let response = try? DeviceResponse(Secret(input)) else { return }
    let check = MdocCheck(MobileDocument.request(ageOver: 18), phone.binding, MdocAuthorities(), at: 1_795_888_069)
    for result in check.results(of: response) {
        require(result.verdict != .genuine, "a response of nobody is genuine")
    }
}

/// The parts of a message over Bluetooth: each one is preceded by its length.
@Sendable func mdocParts(_ input: UnsafeRawBufferPointer) {
    var rest = Array(input)[...]
    var parts = BluetoothParts()
    while let length = rest.popFirst() {
        let part = Array(rest.prefix(Int(length)))
        rest = rest.dropFirst(Int(length))
        guard let message = try? parts.add(part) else { continue }
        require(message.count <= input.count, "a message that is longer than its parts")
        var again = BluetoothParts()
        let whole = BluetoothParts.divide(message, capacity: max(Int(length), 20)).compactMap { try? again.add($0) }
        require(whole == [message], "a message is another one after it was divided")
    }
}

/// The messages of a phone as a tag. The input is the answers of the phone, each after two bytes of length.
@Sendable func mdocHandover(_ input: UnsafeRawBufferPointer) {
    let count = input.count
    runDialogue(input) { channel in
        if let application = try? await NDEFApplication(on: channel) {
            if let message = try? await application.message() {
                require((1...count).contains(message.count), "a message that is longer than its answers")
            }
            try? await application.write([UInt8](repeating: 0x5A, count: 300))
            _ = try? await application.message(pause: 1)
        }
        require(await channel.sent.count <= count + 1, "the handover does not end")
    }
}

/// A message to a phone over NFC, and its answer. The first byte says whether reader and phone have extended lengths; the
/// rest is the answers of the phone, each after two bytes of length.
@Sendable func mdocTransfer(_ input: UnsafeRawBufferPointer) {
    let count = input.count
    let isExtended = (input.first ?? 0) & 1 != 0
    runDialogue(UnsafeRawBufferPointer(rebasing: input.dropFirst())) { channel in
        let limits = isExtended ? (command: 65_535, response: 65_536) : (command: 255, response: 256)
        let opened = try? await NFCTransport(on: channel, limits, hasExtendedLength: isExtended)
        if let transport = opened {
            if (try? await transport.send([UInt8](repeating: 0x5A, count: 600))) != nil,
                let message = try? await transport.receive({ _ in })
            {
                require((1..<count).contains(message.count), "a message that is longer than its answers")
            }
            await transport.close([0x5A])
        }
        require(await channel.sent.count <= count + 1, "the transfer does not end")
    }
}

/// Values as JSON: no value is longer than announced.
@Sendable func mdocValue(_ input: UnsafeRawBufferPointer) {
    guard let value = try? CBOR(Array(input)) else { return }
    for isPortrait in [false, true] {
        var writer = JSONWriter()
        MdocValue.write(value, isPortrait: isPortrait, to: &writer)
        require(writer.bytes.count <= MdocValue.length(of: value), "a value that is longer than announced")
    }
}

/// Lists that say who is trusted and what is revoked.
@Sendable func mdocList(_ input: UnsafeRawBufferPointer) {
    let bytes = Array(input)
    if let list = try? MdocStatusList(bytes) { _ = list.isCurrent(at: 1_795_888_069) }
    if let list = try? MdocAuthorityList(bytes) {
        for certificate in list.certificates { try? list.judge(by: certificate, at: 1_795_888_069) }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import ISO7816
import Keycard
import Text
import VirtualKeycard
import WalletFeature

/// The answer to SELECT, and the certificate in it.
@Sendable func keycardSelect(_ input: UnsafeRawBufferPointer) {
    guard let info = try? KeycardInfo(Array(input)) else { return }
    require(info.keyUID == nil || info.keyUID?.count == 32, "a key UID of a wrong length")
    require((0...15).contains(info.pinTries ?? 0), "a counter out of range")
    if let certificate = info.certificate { require(certificate.bytes.count == 98, "a certificate of a wrong length") }
}

/// The templates of GET STATUS, EXPORT KEY and SIGN.
@Sendable func keycardTemplate(_ input: UnsafeRawBufferPointer) {
    let bytes = Array(input)
    if let status = try? KeycardStatus(bytes) { require((0...255).contains(status.pinTries), "a wrong counter") }
    if let fields = KeyTemplate(Secret(bytes)) {
        require(fields.privateRange.map { $0.upperBound <= bytes.count } ?? true, "a key behind the answer")
    }
    if let signature = try? KeycardApplet.signature(bytes, [UInt8](repeating: 1, count: 32), nil) {
        require(signature.recoveryID <= 3, "a recovery ID out of range")
    }
}

/// Words that a person types. Accepted words are the same after they are written and read.
@Sendable func mnemonic(_ input: UnsafeRawBufferPointer) {
    if let words = try? Mnemonic(words: Secret(input)) {
        guard let again = try? Mnemonic(words: words.words) else { return require(false, "written words are refused") }
        require(ConstantTime.equal(again.indexes, words.indexes), "words change when they are written and read")
    }
    if let words = try? Mnemonic(indexes: Secret(input)) {
        require(words.indexes.count == input.count, "indexes of another length")
    }
    if let path = DerivationPath(String(decoding: input, as: UTF8.self)) {
        require(DerivationPath(path.description) == path, "a path changes when it is written and read")
    }
}

/// The text of a QR code. Its addresses and amounts are in range.
@Sendable func qrPayload(_ input: UnsafeRawBufferPointer) {
    guard let payload = QRPayload(String(decoding: input, as: UTF8.self)) else { return }
    require((1...QRPayload.maximumAddresses).contains(payload.addresses.count), "a wrong number of addresses")
    if case .transaction(let transaction) = payload {
        require(transaction.amounts.count == transaction.addresses.count, "an address without an amount")
    }
}

/// Typed data, as an object in JSON. Data that are written and read again have the same digest.
@Sendable func typedData(_ input: UnsafeRawBufferPointer) {
    guard let json = try? JSON(input), let data = try? TypedData(json) else { return }
    require(data.digest.count == 32, "a digest of a wrong length")
    let claims = [
        TypedData.Claim(.address, json["message"]?["to"] ?? .null, names: ["to"]),
        TypedData.Claim(.number, .array([.string("5"), .string("6")]), names: ["amount", "amounts"]),
        TypedData.Claim(.other, json["message"]?["contents"] ?? .null, names: ["contents"]),
    ]
    require(data.signs(claims).count == claims.count, "a claim without a verdict")
    _ = data.mentions(claims[0], among: claims)
    guard let again = try? TypedData(try JSON(json.bytes)) else { return require(false, "written data are refused") }
    require(again.digest == data.digest, "the digest changes when data are written and read")
}

/// A signature in DER. Written again it is not longer.
@Sendable func ecdsaSignature(_ input: UnsafeRawBufferPointer) {
    guard let signature = try? Signature(der: Array(input)) else { return }
    require(signature.der.count <= input.count, "a longer encoding")
    require((try? Signature(der: signature.der)) == signature, "a signature changes when it is written and read")
}

/// Commands to a virtual Keycard, each after one byte of length. Every answer has a status word. The first byte chooses
/// the version.
@Sendable func virtualKeycard(_ input: UnsafeRawBufferPointer) {
    guard let first = input.first, let authority = try? VirtualKeycardDescription.authority() else { return }
    let version: KeycardVersion = first & 1 == 1 ? .v4_0 : first & 2 == 0 ? .v3_1 : .v3_0
    let identity = try? AppletIdentity(signedBy: authority)
    guard let card = try? VirtualApplet(version, identity: identity, sources: CardSources()) else {
        return require(false, "no card")
    }
    var rest = Array(input.dropFirst())[...]
    while let count = rest.popFirst() {
        require(card.process(Array(rest.prefix(Int(count)))).count >= 2, "an answer without a status word")
        rest = rest.dropFirst(Int(count))
    }
}

/// Both channels, on the side of the terminal and of the card, and a pairing of the store. The keys are fixed.
@Sendable func keycardChannel(_ input: UnsafeRawBufferPointer) {
    let bytes = Array(input)
    let secret = Secret([UInt8](repeating: 1, count: 32))
    let zeros = [UInt8](repeating: 0, count: 32)
    let command = CommandAPDU(KeycardParameters.commandClass, KeycardInstruction.getStatus, 0, 0, data: bytes)
    let answer = ResponseAPDU(data: bytes, .ok)
    for isTerminal in [true, false] {
        guard
            let cbc = try? CBCChannel(shared: secret, pairingKey: secret, salt: zeros, vector: Array(zeros.prefix(16))),
            let ccm = try? CCMChannel(shared: secret, salt: zeros)
        else { return require(false, "no channel") }
        if isTerminal {
            if let plain = try? cbc.unwrap(answer) { require(plain.data.count + 2 < bytes.count, "a longer answer") }
            if let plain = try? ccm.unwrap(answer) { require(plain.data.count + 2 < bytes.count, "a longer answer") }
        } else {
            if let plain = try? cbc.unwrap(command) { require(plain.count < bytes.count, "a longer command") }
            if let plain = ccm.unwrap(command) { require(plain.count < bytes.count, "a longer command") }
        }
    }
    guard let pairing = KeycardPairing(encoded: Secret(bytes)) else { return }
    require(ConstantTime.equal(pairing.encoded, Secret(bytes)), "a pairing changes when it is read and written")
}

/// A whole dialogue with a card. The input is its answers, each after two bytes of length.
@Sendable func keycardDialogue(_ input: UnsafeRawBufferPointer) {
    runDialogue(input, dialogue)
}

@Sendable private func dialogue(_ channel: InputChannel) async {
    guard let applet = try? await KeycardApplet.select(on: channel) else { return }
    try? await applet.initialize(
        pin: Secret("123456".utf8),
        puk: Secret("987654321098".utf8),
        pairingSecret: Secret([UInt8](repeating: 1, count: 32))
    )
    if let pairing = try? await applet.pair(secret: Secret([UInt8](repeating: 1, count: 32))) {
        try? await applet.open(pairing)
    }
    try? await applet.open(KeycardPairing(slot: 0, key: Secret([UInt8](repeating: 1, count: 32))))
    try? await applet.openWithCertificate()
    _ = try? await applet.identify()
    _ = try? await applet.verifyPIN(Secret("123456".utf8))
    let sent = await channel.sent
    require(!sent.contains { $0.contains("123456") }, "the PIN is sent in clear")
    require(sent.count < 600, "the dialogue does not end")
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import ISO7816
package import ReadersVirtual
import Taps
package import Text

/// A card or phone with Aliro in software, which is strict where cards differ: it refuses everything that it does not
/// expect.
final class VirtualAliroCard: VirtualCardSoftware {
    let historicalBytes: [UInt8] = Array("Aliro".utf8)
    private let description: VirtualAliroDescription
    private let key: ECPrivateKey
    /// The key of the readers that the card knows.
    private let reader: ECPublicKey?
    private var state = State.idle
    private var answers: VirtualTapAnswers
    /// The keys for the fast phase, by identifier of the reader; the newest is the last.
    private var persistent: [(reader: [UInt8], key: SharedKey)] = []
    /// The numbers of signatures and of cryptograms of the fast phase since the card was made.
    private var (signatures, cryptograms) = (0, 0)
    /// The last status that a reader has sent.
    private var status: UInt16?
    /// The first answer to AUTH1, for `replayed`.
    private var first: [UInt8]?

    private static let maximumReaders = 16
    private static let time = Array("2026-11-22T12:00:00Z".utf8)

    /// The progress of a tap.
    private enum State {
        case idle
        case selected
        case selectedPKOC
        /// AUTH0 is answered; the channel is that of the fast phase.
        case opened(AliroTranscript, SharedKey, AliroChannel?)
        /// AUTH1 is answered.
        case authenticated(AliroChannel)
    }

    /// A key that copyable values hold.
    private final class SharedKey {
        let secret: Secret
        init(_ secret: consuming Secret) { self.secret = secret }
    }

    init(_ description: VirtualAliroDescription, _ key: consuming ECPrivateKey, _ reader: ECPublicKey?) {
        self.description = description
        answers = VirtualTapAnswers(description.tap)
        self.key = key
        self.reader = reader
    }

    var counters: [JSON.Member] {
        [
            .init("signatures", .number(String(signatures))), .init("cryptograms", .number(String(cryptograms))),
            .init("status", status.map { .string(Hex.encode($0)) } ?? .null),
        ]
    }

    func reset() {
        state = .idle
        answers.reset()
    }

    func process(_ command: [UInt8]) -> [UInt8] {
        answers.process(command, answer)
    }

    private func answer(to command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        if command.ins == 0xA4 { return try select(command) }
        if case .selectedPKOC = state { return try authenticatePKOC(command) }
        guard command.cla == 0x80 else { throw .wrongClass }
        guard command.p1 == 0, command.p2 == 0 else { throw .wrongParameters }
        switch command.ins {
        case AliroCommand.auth0Instruction: return try auth0(command.data)
        case AliroCommand.auth1Instruction: return try auth1(command.data)
        case AliroCommand.exchangeInstruction: return try exchange(command.data)
        case AliroCommand.controlFlowInstruction:
            state = .idle
            return []
        default: throw .wrongInstruction
        }
    }

    // MARK: Commands

    private func select(_ command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        state = .idle
        guard command.cla == 0, command.p1 == 0x04, command.p2 == 0 else { throw .noApplication }
        if description.hasPKOC, command.data == PKOCCommand.applicationID {
            state = .selectedPKOC
            return BERTLV(PKOCTag.versions, [0x01, 0x00]).encoded
        }
        guard command.data == AliroCommand.applicationID else { throw .noApplication }
        state = .selected
        return BERTLV(AliroTag.file, [BERTLV(AliroTag.name, AliroCommand.applicationID), proprietary]).encoded
    }

    private var proprietary: BERTLV {
        BERTLV(
            AliroTag.proprietary,
            [BERTLV(AliroTag.type, [0, 0]), BERTLV(AliroTag.versions, description.tap.versions)]
        )
    }

    private func auth0(_ data: [UInt8]) throws(RefusedCommand) -> [UInt8] {
        guard case .selected = state else { throw .wrongState }
        guard let opening = AliroOpening(data: data) else { throw .wrongLength }
        guard description.tap.has(version: opening.version),
            description.group.map({ opening.readerIdentifier.starts(with: $0) }) ?? true
        else { throw .wrongState }
        return try crypto(open(opening))
    }

    private func open(_ opening: AliroOpening) throws(CryptoError) -> [UInt8] {
        let ephemeral = try ECPrivateKey(on: try Curve.secp256r1.group)
        let transcript = AliroTranscript(
            opening,
            // A card that knows no reader answers AUTH0 like the others, and refuses AUTH1.
            readerKey: reader ?? key.publicKey,
            proprietary: proprietary.encoded,
            cardEphemeral: ephemeral.publicKey
        )
        let agreed = SharedKey(try transcript.agree(ephemeral, with: opening.ephemeral))
        var answer = BERTLV(AliroTag.cardEphemeral, ephemeral.publicKey.uncompressed).encoded
        var channel: AliroChannel?
        if opening.wantsFast, description.isFast {
            var cryptogram = try Random.bytes(AliroOpeningAnswer.cryptogramLength)
            if let index = persistent.firstIndex(where: { $0.reader == opening.readerIdentifier }) {
                let credential = key.publicKey
                let sealing = try transcript.cryptogramKey(persistent[index].key.secret, credential: credential)
                cryptogram = try AliroCryptogram.seal(Secret(signalling + times), key: sealing)
                channel = try transcript.fastChannel(persistent[index].key.secret, credential: credential)
                cryptograms += 1
            }
            answer += BERTLV(AliroTag.cryptogram, cryptogram).encoded
        }
        state = .opened(transcript, agreed, channel)
        return answer
    }

    private func auth1(_ data: [UInt8]) throws(RefusedCommand) -> [UInt8] {
        guard case .opened(let transcript, let agreed, _) = state else { throw .wrongState }
        guard let objects = try? BERTLV.sequence(data),
            objects.map(\.tag) == [AliroTag.parameters, AliroTag.signature],
            objects[0].value == [0x01]
        else { throw .wrongLength }
        state = .idle
        let signature = objects[1].value
        let isKnown = try crypto { () throws(CryptoError) in
            guard let reader else { return false }
            return try ECDSA.verify(signature, of: transcript.signed(by: .reader), with: reader, digest: .sha256)
        }
        guard isKnown else { throw .wrongSignature }
        return try crypto(authenticate(transcript, agreed))
    }

    private func authenticate(
        _ transcript: AliroTranscript,
        _ agreed: SharedKey
    ) throws(CryptoError) -> [UInt8] {
        let channel = try transcript.standardChannel(agreed.secret)
        var message = transcript.signed(by: .card)
        if description.tap.signature == .wrong { message.append(0) }
        signatures += 1
        let signature = try ECDSA.sign(message, with: key, digest: .sha256)
        let plain =
            BERTLV(AliroTag.publicKey, key.publicKey.uncompressed).encoded
            + BERTLV(AliroTag.signature, signature).encoded + signalling + times
        let sealed = try channel.seal(Secret(plain), from: .card)
        let identifier = transcript.opening.readerIdentifier
        let shared = try transcript.persistentKey(agreed.secret, credential: key.publicKey)
        persistent.removeAll { $0.reader == identifier }
        persistent.append((identifier, SharedKey(shared)))
        if persistent.count > Self.maximumReaders { persistent.removeFirst() }
        state = .authenticated(channel)
        if description.tap.signature == .replayed, let first { return first }
        first = first ?? sealed
        return sealed
    }

    private func exchange(_ data: [UInt8]) throws(RefusedCommand) -> [UInt8] {
        let channel: AliroChannel
        switch state {
        case .authenticated(let session), .opened(_, _, let session?): channel = session
        case .idle, .selected, .selectedPKOC, .opened: throw .wrongState
        }
        state = .idle
        let opened = try crypto(channel.open(data, from: .reader))
        guard let plain = opened else { throw .wrongSignature }
        let read = plain.withBytes { try? BERTLV.sequence($0) }
        guard let objects = read, objects.map(\.tag) == [AliroTag.readerStatus], objects[0].value.count == 2 else {
            throw .wrongLength
        }
        status = UInt16(objects[0].value[0]) << 8 | UInt16(objects[0].value[1])
        state = .authenticated(channel)
        return try crypto(channel.seal(Secret([0, 2, 0, 0]), from: .card))
    }

    /// PKOC, SE V1.
    private func authenticatePKOC(_ command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        guard command.cla == 0x80, command.ins == PKOCCommand.authenticateInstruction else { throw .wrongInstruction }
        guard let objects = try? BERTLV.sequence(command.data),
            let transaction = objects.first(where: { $0.tag == PKOCTag.transaction })?.value, transaction.count == 16
        else { throw .wrongLength }
        signatures += 1
        return try crypto { () throws(CryptoError) in
            let signature = try ECDSA.sign(transaction, with: key, digest: .sha256)
            return BERTLV(PKOCTag.publicKey, key.publicKey.uncompressed).encoded
                + BERTLV(PKOCTag.signature, signature).encoded
        }
    }

    // MARK: Parts

    private var signalling: [UInt8] { BERTLV(AliroTag.signalling, [0, 0]).encoded }

    private var times: [UInt8] {
        BERTLV(AliroTag.credentialTime, Self.time).encoded + BERTLV(AliroTag.revocationTime, Self.time).encoded
    }
}

package typealias VirtualAliroKind = VirtualTapKind<VirtualAliroDescription>

/// What a virtual card with Aliro is made of.
package struct VirtualAliroDescription: VirtualTapDescription {
    package static let kind = "aliro"
    package var tap = VirtualTapOptions()
    /// The compressed public key of the readers that the card knows; nil: it knows none, and refuses all of them.
    package var reader: [UInt8]?
    /// The group of these readers; nil: any.
    package var group: [UInt8]?
    /// Whether the card does the fast phase with readers that have read it before.
    package var isFast = true
    /// Whether the card has PKOC with the same key, too, as a phone may have.
    package var hasPKOC = false
    package var options = VirtualCardOptions()

    package init() {}

    package mutating func set(_ name: String, _ entry: CardEntry) throws(Malformed) -> Bool {
        switch name {
        case "reader": reader = try entry.bytes(33)
        case "group": group = try entry.bytes(16)
        case "fast": isFast = try entry.bool()
        case "pkoc": hasPKOC = try entry.bool()
        default: return false
        }
        return true
    }

    package func makeCard() throws(Malformed) -> VirtualCard {
        let key = try tap.makeKey(label: "badged: key of virtual Aliro cards")
        var known: ECPublicKey?
        if let reader {
            guard let key = try? ECPublicKey(compressedPoint: reader, on: .secp256r1) else {
                throw Malformed("card.reader is not a compressed public key of P-256")
            }
            known = key
        }
        return try VirtualCard(VirtualAliroCard(self, key, known), options)
    }
}

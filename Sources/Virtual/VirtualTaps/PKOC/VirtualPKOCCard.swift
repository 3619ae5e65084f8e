// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import ISO7816
package import ReadersVirtual
import Taps
package import Text

/// A PKOC card or phone in software, which is strict where cards differ: it refuses everything that it does not expect.
final class VirtualPKOCCard: VirtualCardSoftware {
    let historicalBytes: [UInt8] = Array("PKOC".utf8)
    private let description: VirtualPKOCDescription
    private let key: ECPrivateKey
    private var isSelected = false
    /// Whether the card has signed since its activation.
    private var hasSigned = false
    private var answers: VirtualTapAnswers
    /// The number of signatures since the card was made.
    private var signatures = 0
    /// The first signature of the card, for `replayed`.
    private var first: [UInt8]?

    init(_ description: VirtualPKOCDescription, _ key: consuming ECPrivateKey) {
        self.description = description
        answers = VirtualTapAnswers(description.tap)
        self.key = key
    }

    var counters: [JSON.Member] { [.init("signatures", .number(String(signatures)))] }

    func reset() {
        isSelected = false
        hasSigned = false
        answers.reset()
    }

    func process(_ command: [UInt8]) -> [UInt8] {
        answers.process(command, answer)
    }

    private func answer(to command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        if command.ins == 0xA4 { return try select(command) }
        switch (command.cla, command.ins) {
        case (0x80, PKOCCommand.authenticateInstruction): return try authenticate(command)
        case (0x00, PKOCCommand.getDataInstruction) where description.certificate != nil:
            return try getData(command)
        case (0x00, PKOCCommand.internalAuthenticateInstruction) where description.certificate != nil:
            return try internalAuthenticate(command)
        case (_, PKOCCommand.authenticateInstruction): throw .wrongClass
        default: throw .wrongInstruction
        }
    }

    private func select(_ command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        guard command.cla == 0, command.p1 == 0x04, command.p2 == 0, command.data == PKOCCommand.applicationID else {
            // A phone forgets what it has done when another application is selected.
            isSelected = false
            hasSigned = false
            throw .noApplication
        }
        isSelected = true
        return BERTLV(PKOCTag.versions, description.tap.versions).encoded
    }

    private func authenticate(_ command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        guard isSelected else { throw .wrongState }
        guard command.p1 == 0, command.p2 == 1 else { throw .wrongParameters }
        guard let objects = try? BERTLV.sequence(command.data), objects.count == 3,
            let version = objects.first(where: { $0.tag == PKOCTag.versions })?.value,
            let transaction = objects.first(where: { $0.tag == PKOCTag.transaction })?.value,
            let reader = objects.first(where: { $0.tag == PKOCTag.readerIdentifier })?.value,
            version.count == 2, (16...65).contains(transaction.count), reader.count == 32
        else { throw .wrongLength }
        guard description.tap.has(version: version) else { throw .wrongState }
        return BERTLV(PKOCTag.publicKey, key.publicKey.uncompressed).encoded + (try sign(transaction))
    }

    private func getData(_ command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        guard isSelected else { throw .wrongState }
        guard command.data.isEmpty else { throw .wrongLength }
        switch (command.p1, command.p2) {
        case (0x7F, 0x63): return BERTLV(PKOCTag.information, [BERTLV(PKOCTag.versions, [0x02, 0x00])]).encoded
        case (0x7F, 0x21): return description.certificate ?? []
        default: throw .noData
        }
    }

    private func internalAuthenticate(_ command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        guard isSelected else { throw .wrongState }
        guard command.p1 == 0, command.p2 == 0 else { throw .wrongParameters }
        guard command.data.count == PKOCCommand.challengeLength else { throw .wrongLength }
        return try sign(command.data)
    }

    /// The object with the signature of a message. A phone signs once per activation.
    private func sign(_ message: [UInt8]) throws(RefusedCommand) -> [UInt8] {
        guard !(description.isPhone && hasSigned) else { throw .failure }
        hasSigned = true
        signatures += 1
        let signed: [UInt8]
        switch description.tap.signature {
        case .right: signed = message
        case .wrong: signed = message + [0]
        case .replayed: signed = first ?? message
        }
        first = first ?? message
        let signature = try crypto(ECDSA.sign(signed, with: key, digest: .sha256))
        return BERTLV(PKOCTag.signature, signature).encoded
    }
}

package typealias VirtualPKOCKind = VirtualTapKind<VirtualPKOCDescription>

/// What a virtual PKOC card is made of.
package struct VirtualPKOCDescription: VirtualTapDescription {
    package static let kind = "pkoc"
    package var tap = VirtualTapOptions()
    /// The object 7F21; nil: a card without SE V2.
    package var certificate: [UInt8]?
    /// Whether the card signs once per activation, as a phone does.
    package var isPhone = false
    package var options = VirtualCardOptions()

    package init() {}

    package mutating func set(_ name: String, _ entry: CardEntry) throws(Malformed) -> Bool {
        switch name {
        case "certificate": certificate = try entry.bytes()
        case "phone": isPhone = try entry.bool()
        default: return false
        }
        return true
    }

    package func makeCard() throws(Malformed) -> VirtualCard {
        let key = try tap.makeKey(label: "badged: key of virtual PKOC cards")
        return try VirtualCard(VirtualPKOCCard(self, key), options)
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import ISO7816
import MobileDocument
import ReadersVirtual
import Text

/// A phone with a wallet on an NFC reader: a tag of NFC Forum type 4 with a handover, and the application for data
/// transfer. ISO/IEC 18013-5, 8.2.2.1 and 8.3.3.1.2.
///
/// The part of the reader that reports the number of a card is in it as well.
final class VirtualPhone: VirtualCardSoftware {
    private enum Application { case none, handover, transfer }

    /// What the phone expects from the reader in a negotiated handover.
    private enum Expected { case nothing, service, request }

    private static let handover: [UInt8] = [0xD2, 0x76, 0x00, 0x00, 0x85, 0x01, 0x01]
    private static let transfer: [UInt8] = [0xA0, 0x00, 0x00, 0x02, 0x48, 0x04, 0x00]
    private static let capabilityFile: [UInt8] = [0xE1, 0x03]
    private var messageFile: [UInt8] { [0xE1, description.quirks.contains(.otherFile) ? 0x05 : 0x04] }

    private let wallet: VirtualWallet
    private var description: VirtualMdocDescription { wallet.description }
    private var application = Application.none
    private var file: [UInt8] = []
    private var expected = Expected.nothing
    private var message: [UInt8] = []
    private var written: [UInt8]?
    /// How often the length of the message is 0 before the answer.
    private var waits = 0
    private var envelope: [UInt8] = []
    private var rest: [UInt8] = []
    /// How often the handover was selected since the card was made.
    private(set) var selects = 0
    /// Milliseconds that the last answer takes.
    private(set) var delay = 0
    private var number: [UInt8] = []

    init(_ wallet: VirtualWallet) {
        self.wallet = wallet
        reset()
    }

    let historicalBytes: [UInt8] = Array("PHONE".utf8)

    var counters: [JSON.Member] {
        [
            JSON.Member("selects", .number(String(selects))), .init("requests", .number(String(wallet.requests))),
            .init("engagement", .string(wallet.code)),
            .init("reader", wallet.readerCertificates.first.map { .string(Base64.standard.encode($0)) } ?? .null),
            .init("isSignedAsOne", .bool(wallet.isSignedAsOne)),
            .init("registration", wallet.registration.map { .string(Base64.standard.encode($0)) } ?? .null),
        ]
    }

    func reset() {
        application = .none
        file = []
        expected = .nothing
        message = []
        written = nil
        envelope = []
        rest = []
        delay = 0
        // A phone draws a new number for each field.
        number = [0x08] + ((try? Random.bytes(3)) ?? [1, 2, 3])
        wallet.leave()
    }

    func process(_ command: [UInt8]) -> [UInt8] {
        delay = 0
        do throws(RefusedCommand) {
            guard let command = CommandAPDU(bytes: Self.withoutEmptyData(command)) else { throw .wrongLength }
            guard !command.isExtended || description.limits.command > 255 || description.limits.response > 256 else {
                throw .wrongLength
            }
            return try answer(to: command)
        } catch {
            return [error.status.sw1, error.status.sw2]
        }
    }

    /// Leaves out the length of data that are not there, which some readers write in GET RESPONSE. Wallets accept it.
    private static func withoutEmptyData(_ command: [UInt8]) -> [UInt8] {
        guard command.count == 6 || command.count == 8, command[1] == 0xC0, command[4] == 0 else { return command }
        return Array(command[..<4] + command[5...])
    }

    private static let ok: [UInt8] = [0x90, 0x00]

    private func answer(to command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        switch (command.cla, command.ins) {
        case (0xFF, 0xCA): return number + Self.ok
        case (0x00, 0xA4) where command.p1 == 0x04: return try select(command.data)
        case (0x00, 0xA4):
            let files = [Self.capabilityFile, messageFile]
            guard application == .handover, files.contains(command.data) else { throw .noApplication }
            file = command.data
            return Self.ok
        case (0x00, 0xB0) where application == .handover: return try read(command)
        case (0x00, 0xD6) where application == .handover: return try update(command)
        case (0x00, 0xC3) where application == .transfer, (0x10, 0xC3) where application == .transfer:
            return try receive(command)
        case (0x00, 0xC0) where application == .transfer: return part(command.le ?? 0)
        case (0x00, _), (0x10, _): throw .wrongInstruction
        default: throw .wrongClass
        }
    }

    private func select(_ identifier: [UInt8]) throws(RefusedCommand) -> [UInt8] {
        switch identifier {
        case Self.handover:
            selects += 1
            guard !description.quirks.contains(.locked) else { throw .noApplication }
            application = .handover
            waits = 0
            try crypto(wallet.beginHandover())
            if description.isNegotiated {
                message = TNEPService.encoding()
                expected = .service
            } else {
                message = handoverSelect(namesUUID: true)
                wallet.handover = .nfc(select: message, request: nil)
            }
        case Self.transfer where description.ways.contains(.nfc):
            application = .transfer
            envelope = []
        default: throw .noApplication
        }
        return Self.ok
    }

    private func handoverSelect(namesUUID: Bool) -> [UInt8] {
        HandoverSelect.encoding(engagement: wallet.nfcEngagement, ways: wallet.ways, namesUUID: namesUUID)
    }

    // MARK: Handover

    private func read(_ command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        let (count, offset) = (command.le ?? 0, Int(command.p1) << 8 | Int(command.p2))
        guard count <= description.longestRead else { throw .wrongLength }
        var content: [UInt8]
        if file == Self.capabilityFile {
            content = [0x00, 0x0F, 0x20] + Self.number(description.longestRead) + Self.number(description.longestWrite)
            content += [0x04, 0x06] + messageFile + [0x7F, 0xFF, 0x00, description.isNegotiated ? 0x00 : 0xFF]
        } else if offset == 0, waits > 0 {
            waits -= 1
            content = [0, 0]
        } else {
            let lie = description.quirks.contains(.wrongLength) ? 5 : 0
            content = Self.number(message.count + lie) + message
        }
        guard offset < content.count else { throw .wrongParameters }
        return Array(content[offset..<min(offset + count, content.count)]) + Self.ok
    }

    private static func number(_ number: Int) -> [UInt8] {
        [UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number)]
    }

    private func update(_ command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        guard description.isNegotiated, file == messageFile else { throw .wrongState }
        guard command.data.count <= description.longestWrite else { throw .wrongLength }
        let offset = Int(command.p1) << 8 | Int(command.p2)
        switch (offset, written) {
        case (0, nil) where command.data == [0, 0]: written = []
        case (0, let parts?) where command.data == Self.number(parts.count):
            written = nil
            try take(parts)
        case (0, nil) where command.data.prefix(2) == Self.number(command.data.count - 2)[...]:
            try take(Array(command.data.dropFirst(2)))
        case (2..., let parts?) where offset == parts.count + 2: written = parts + command.data
        default: throw RefusedCommand(0x6A80)
        }
        return Self.ok
    }

    private func take(_ message: [UInt8]) throws(RefusedCommand) {
        waits = description.waits
        switch expected {
        case .service where message == TNEPService.select:
            self.message = TNEPService.status(description.quirks.contains(.refusesService) ? 1 : 0)
            expected = .request
        case .request:
            guard let request = try? HandoverRequest(message) else { throw RefusedCommand(0x6A80) }
            if request.offersCentralClient, description.ways.contains(.bleCentral), let uuid = request.uuid {
                wallet.uuid = uuid
            }
            self.message = handoverSelect(namesUUID: description.ways.contains(.blePeripheral))
            wallet.handover = .nfc(select: self.message, request: message)
            expected = .nothing
        case .service, .nothing: throw RefusedCommand(0x6A80)
        }
    }

    // MARK: Data transfer

    private func receive(_ command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        guard command.data.count <= description.limits.command else { throw .wrongLength }
        envelope += command.data
        guard !command.isChained else { return Self.ok }
        guard let object = try? BERTLV(envelope), object.tag == 0x53 else { throw RefusedCommand(0x6A80) }
        envelope = []
        delay = description.consent == .never ? Self.never : description.consentMilliseconds
        switch wallet.answer(to: object.value) {
        case .message(let message):
            rest = BERTLV(description.quirks.contains(.wrongObject) ? 0x54 : 0x53, message).encoded
        case .silence: rest = [0x53, 0x00]
        case .asks: throw .wrongState
        }
        return part(command.le ?? 0)
    }

    /// Longer than any reader waits, in milliseconds.
    private static let never = 600_000

    private func part(_ count: Int) -> [UInt8] {
        let count = min(count, description.limits.response, rest.count)
        let part = rest.prefix(count)
        rest = Array(rest.dropFirst(count))
        guard !rest.isEmpty else { return part + Self.ok }
        if description.quirks.contains(.wrongRest) {
            return part + [0x61, UInt8(truncatingIfNeeded: rest.count - 256)]
        }
        return part + [0x61, rest.count < 256 ? UInt8(rest.count) : 0]
    }
}

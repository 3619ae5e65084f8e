// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import EID
import Glibc
import ISO7816
import Readers
import ReadersVirtual
import Text

/// The software of the virtual eID card.
///
/// The commands are in the extensions beside this file, one file per part of the standard.
final class CardOperatingSystem: VirtualCardSoftware {
    // Permanent state.
    var files: CardFileSystem
    var passwords: CardPasswords
    let keys: [Int: CardKey]
    let algorithms: CardAlgorithms
    /// The newest first, at most two. TR-03110-3 2.5.
    var trustPoints: [CertificateHolder]
    /// The latest effective date of the trusted certificates that the card has accepted. TR-03110-2 2.3.2.
    var currentDate: CVDate
    var random: CardRandom

    // State that a reset clears.
    private(set) var channel: SecureMessaging?
    /// Replaces `channel` after the answer to the current command.
    private var nextChannel: SecureMessaging?
    var session = CardSession()
    var pace: PACERun?
    var currentFile: UInt8?

    /// Takes the secrets out of `description`.
    init(_ description: VirtualEIDDescription) throws(Malformed) {
        let content = try CardContent(description)
        files = content.files
        keys = content.keys
        algorithms = content.algorithms
        trustPoints = [content.trustPoint]
        currentDate = description.currentDate ?? content.trustPoint.certificate.effectiveDate
        random = description.random
        channel = nil
        nextChannel = nil
        pace = nil
        passwords = try CardPasswords(description)
    }

    var historicalBytes: [UInt8] { VirtualEIDDescription.historicalBytes }

    var counters: [JSON.Member] {
        [
            .init("retryCounter", .number(String(passwords.retryCounter))),
            .init("pukCounter", .number(String(passwords.pukCounter))),
            .init("transport", .bool(passwords.isTransport)),
        ]
    }

    /// Handles the loss of power or a reset by the reader. Only files, passwords, counters, trust points and the date
    /// stay.
    func reset() {
        dropChannel()
        currentFile = nil
    }

    /// Ends secure messaging and all rights of the terminal.
    private func dropChannel() {
        channel = nil
        nextChannel = nil
        session = CardSession()
        pace = nil
    }

    /// Opens a secure channel for the next command.
    func open(_ channel: consuming SecureMessaging) { nextChannel = consume channel }

    /// Whether the current command has come through secure messaging.
    var isProtected: Bool { channel != nil }

    /// Runs one command. The answer has at least a status word.
    func process(_ bytes: [UInt8]) -> [UInt8] {
        guard var command = CommandAPDU(bytes: bytes) else { return refuse(0x6700) }
        let secureMessaging = command.cla & 0x0C
        guard Self.classes.contains(command.cla & ~0x0C), secureMessaging == 0 || secureMessaging == 0x0C else {
            return refuse(0x6E00)
        }
        guard secureMessaging == 0 else { return processProtected(command) }
        // A command without secure messaging ends the channel. TR-03110-3 F.4.
        if isProtected { dropChannel() }
        defer { wipe(&command.data) }
        let answer = run(command)
        if nextChannel != nil { channel = nextChannel.take() }
        return answer.bytes
    }

    /// The interindustry class, the same in a chain, and the class of VERIFY for auxiliary data. TR-03110-3 B.11.
    private static let classes: Set<UInt8> = [0x00, 0x10, 0x80]

    private func processProtected(_ secured: CommandAPDU) -> [UInt8] {
        guard isProtected else { return refuse(0x6882) }
        var command: CommandAPDU
        do throws(ChipError) {
            guard let plain = try channel?.unwrap(secured) else { return refuse(0x6882) }
            command = plain
        } catch {
            return refuse(error == .missingObject ? 0x6987 : 0x6988)
        }
        defer { wipe(&command.data) }
        let answer = run(command)
        guard let secured = try? channel?.wrap(answer) else { return refuse(0x6F00) }
        if nextChannel != nil { channel = nextChannel.take() }
        return secured.bytes
    }

    /// Answers an invalid command or an error of secure messaging without protection, and ends the channel.
    /// TR-03110-3 F.4.
    private func refuse(_ status: UInt16) -> [UInt8] {
        dropChannel()
        return ResponseAPDU(StatusWord(status)).bytes
    }

    private func run(_ command: CommandAPDU) -> ResponseAPDU {
        do throws(RefusedCommand) {
            return try execute(command)
        } catch {
            return ResponseAPDU(error.status)
        }
    }

    private func execute(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        // Any other command between the steps of a PACE run ends the run.
        if command.ins != 0x86, pace?.hasBegun == true { pace = nil }
        let expected: Set<UInt8> =
            switch command.ins {
            case 0x86: [0x00, 0x10]
            case 0x20: [0x80]
            default: [0x00]
            }
        switch command.ins {
        case 0x04, 0x20, 0x22, 0x2A, 0x2C, 0x44, 0x82, 0x84, 0x86, 0xA4, 0xB0, 0xB1, 0xD6: break
        default: throw RefusedCommand(0x6D00)
        }
        guard expected.contains(command.cla) else { throw RefusedCommand(0x6E00) }
        switch command.ins {
        case 0x04, 0x44: return try setPINActive(command)
        case 0x20: return try verifyAuxiliaryData(command)
        case 0x22: return try manageSecurityEnvironment(command)
        case 0x2A: return try verifyCertificate(command)
        case 0x2C: return try resetRetryCounter(command)
        case 0x82: return try externalAuthenticate(command)
        case 0x84: return try getChallenge(command)
        case 0x86: return try generalAuthenticate(command)
        case 0xA4: return try select(command)
        case 0xB0: return try readBinary(command)
        case 0xB1: return try readBinaryOdd(command)
        default: return try updateBinary(command)
        }
    }

    /// MSE: selects protocol and key for the next commands. TR-03110-3 B.11.1 to B.11.3.
    private func manageSecurityEnvironment(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        let template = UInt16(command.p1) << 8 | UInt16(command.p2)
        guard [0xC1A4, 0x81A4, 0x41A4, 0x81B6].contains(template) else { throw RefusedCommand(0x6A86) }
        // Terminals send the command without data to end a channel; the channel has ended above.
        guard !command.data.isEmpty, command.le == nil else { throw RefusedCommand(0x6700) }
        let objects = try DataObjects(command.data)
        switch template {
        case 0xC1A4: return try setPACE(objects)
        case 0x81A4: return try setTerminalAuthentication(objects)
        case 0x41A4: return try setChipProtocol(objects)
        default: return try setSignatureKey(objects)
        }
    }

    /// GENERAL AUTHENTICATE: one step of the selected protocol. TR-03110-3 B.11.5.
    private func generalAuthenticate(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        guard command.p1 == 0, command.p2 == 0 else { throw RefusedCommand(0x6A86) }
        guard !command.data.isEmpty, command.le != nil else { throw RefusedCommand(0x6700) }
        if pace != nil { return try continuePACE(command) }
        guard !command.isChained else { throw RefusedCommand(0x6884) }
        switch session.chosen {
        case nil: throw RefusedCommand(0x6985)
        case .chipAuthentication(let key, let cipher): return try authenticateChip(command.data, key, cipher)
        case .restrictedIdentification(let key, let digest): return try identify(command.data, key, digest)
        }
    }

    private func wipe(_ bytes: inout [UInt8]) {
        bytes.withUnsafeMutableBytes { if let base = $0.baseAddress { explicit_bzero(base, $0.count) } }
    }
}

/// The data objects of a command. Each tag occurs once.
struct DataObjects {
    private var values: [UInt32: BERTLV] = [:]

    /// Parses the data field of a command.
    /// - Throws: 6A80 for malformed data, and for a repeated tag.
    init(_ bytes: [UInt8]) throws(RefusedCommand) {
        guard let objects = try? BERTLV.sequence(bytes) else { throw RefusedCommand(0x6A80) }
        for object in objects {
            guard values.updateValue(object, forKey: object.tag) == nil else { throw RefusedCommand(0x6A80) }
        }
    }

    subscript(_ tag: UInt32) -> BERTLV? { values[tag] }

    /// The value of a required object.
    /// - Throws: 6A80 when there is no such object.
    func value(_ tag: UInt32) throws(RefusedCommand) -> [UInt8] {
        guard let object = values[tag] else { throw RefusedCommand(0x6A80) }
        return object.value
    }

    /// The value of an optional object of one byte.
    /// - Throws: 6A80 for another length.
    func byte(_ tag: UInt32) throws(RefusedCommand) -> UInt8? {
        guard let value = values[tag]?.value else { return nil }
        guard value.count == 1 else { throw RefusedCommand(0x6A80) }
        return value[0]
    }

    /// Refuses objects with other tags than these.
    /// - Throws: 6A80 when there is such an object.
    func allow(only tags: Set<UInt32>) throws(RefusedCommand) {
        guard tags.isSuperset(of: values.keys) else { throw RefusedCommand(0x6A80) }
    }
}

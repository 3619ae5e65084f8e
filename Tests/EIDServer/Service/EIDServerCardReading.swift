// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import ISO7816
import Server
import Text

/// The commands that the service sends through its own secure messaging, and the data in the answers.
final class CardReading {
    /// Holds session keys in a class.
    final class Keys {
        let keys: SessionKeys
        init(_ keys: consuming SessionKeys) { self.keys = keys }
    }

    /// A command that waits for its answer, with the state of the channel for that answer.
    final class Step {
        enum Purpose {
            case other
            case verification(String)
            case pseudonym
            case group(UInt8)
        }

        let purpose: Purpose
        let command: CommandAPDU
        fileprivate var channel: SecureMessaging

        fileprivate init(_ purpose: Purpose, _ command: CommandAPDU, _ channel: consuming SecureMessaging) {
            self.purpose = purpose
            self.command = command
            self.channel = channel
        }
    }

    private let keys: Keys
    private let readLength: Int
    private var exchanges: UInt32 = 0
    private var planned: [(Step.Purpose, CommandAPDU)] = []
    private var groups: [UInt8: [UInt8]] = [:]
    private(set) var pending: [Step] = []
    /// The data by SDK name: text, list or digits; true or false for comparisons; null when the card refused.
    private(set) var data: [JSON.Member] = []

    /// The maximum number of bytes of a data group.
    private static let maximumGroup = 1 << 16

    init(
        _ rights: AccessRights,
        readLength: Int,
        sector: CVAuthority,
        keys: Keys
    ) throws(ConversationError) {
        (self.keys, self.readLength) = (keys, readLength)
        planned = [(.other, .select(application: ApplicationID.eid)), verify("DocumentValidity", .dateOfExpiry)]
        if rights.contains(.ageVerification) { planned.append(verify("AgeVerification", .dateOfBirth)) }
        if rights.contains(.communityIDVerification) { planned.append(verify("AddressVerification", .communityID)) }
        if rights.contains(.restrictedIdentification) {
            do throws(CryptoError) {
                let identifier = BERTLV(0x80, RestrictedIdentification.protocolID(CVAuthority.digest)).encoded
                let key = try sector.sectorKey().value
                let request = BERTLV(0x7C, [BERTLV(0xA0, key)]).encoded
                planned += [
                    (.other, CommandAPDU(0x00, 0x22, 0x41, 0xA4, data: identifier + BERTLV(0x84, [1]).encoded)),
                    (.pseudonym, CommandAPDU(0x00, 0x86, 0x00, 0x00, data: request, le: 256)),
                ]
            } catch {
                throw .internalError("sector key: \(error)")
            }
        }
        for group in rights.rights.compactMap(\.dataGroup) {
            planned.append((.group(group), .readBinary(shortFileID: group, le: readLength)))
        }
    }

    /// Plans VERIFY for auxiliary data. TR-03110-3 B.11.8.
    private func verify(_ name: String, _ kind: AuxiliaryData.Kind) -> (Step.Purpose, CommandAPDU) {
        let data = BERTLV(0x06, kind.identifier).encoded
        return (.verification(name), CommandAPDU(0x80, 0x20, 0x80, 0x00, data: data))
    }

    /// Whether all commands are sent and answered.
    var isDone: Bool { planned.isEmpty && pending.isEmpty }

    /// Plans another selection of the application, which changes nothing.
    func planSelection() { planned.append((.other, .select(application: ApplicationID.eid))) }

    /// Secures the next commands: at most `count`, or all when it is 0.
    func next(_ count: Int) throws(ConversationError) -> [CommandAPDU] {
        var secured: [CommandAPDU] = []
        let due = planned.prefix(count == 0 ? planned.count : count)
        planned.removeFirst(due.count)
        for (purpose, command) in due {
            let step = Step(purpose, command, SecureMessaging(keys.keys.clone(), exchanges: exchanges))
            exchanges += 1
            do {
                secured.append(try step.channel.wrap(command))
            } catch {
                throw .internalError("secure messaging: \(error)")
            }
            pending.append(step)
        }
        return secured
    }

    /// Takes the card's answers to all pending commands. Plans more commands for a file that is too long for one answer.
    func receive(_ answers: [[UInt8]]) throws(ConversationError) {
        guard answers.count == pending.count else {
            throw .incorrectParameter("\(pending.count) commands, \(answers.count) answers")
        }
        for (step, bytes) in zip(pending, answers) {
            guard let secured = ResponseAPDU(bytes: bytes) else {
                throw .incorrectParameter("an answer without status")
            }
            let answer: ResponseAPDU
            do {
                answer = try step.channel.unwrap(secured)
            } catch {
                throw .internalError("an answer of the card is not authentic: \(error), status \(secured.status)")
            }
            take(answer, step)
        }
        pending = []
    }

    private func take(_ answer: ResponseAPDU, _ step: Step) {
        switch step.purpose {
        case .other: break
        case .verification(let name): data.append(.init(name, .bool(answer.status == .ok)))
        case .pseudonym:
            let identifier = (try? BERTLV(answer.data).children.first?.value).flatMap { $0 }
            data.append(.init("Pseudonym", identifier.map { .string(Hex.encode($0)) } ?? .null))
        case .group(let number): take(answer, group: number)
        }
    }

    private func take(_ answer: ResponseAPDU, group number: UInt8) {
        let name = AccessRight.reading(dataGroup: number)?.serviceName ?? "DG\(number)"
        guard answer.status == .ok || answer.status == StatusWord(0x6282) else {
            // An error after the first part is only the end of the file.
            if groups[number] == nil { data.append(.init(name, .null)) }
            return
        }
        let content = groups[number, default: []] + answer.data
        let isFirst = groups[number] == nil
        groups[number] = content
        let whole = min(Self.announcedLength(content), Self.maximumGroup)
        if content.count >= whole {
            data.append(.init(name, DataGroup.value(Array(content.prefix(whole)))))
        } else if isFirst {
            // Another file is current now. Reading one byte selects this file again.
            planned.append((.other, .readBinary(shortFileID: number, le: 1)))
            for offset in stride(from: content.count, to: whole, by: readLength) {
                planned.append((.group(number), .readBinary(offset: offset, le: min(readLength, whole - offset))))
            }
        }
    }

    /// The length of the first object with its tag and length.
    private static func announcedLength(_ content: [UInt8]) -> Int {
        guard content.count >= 2 else { return content.count }
        guard content[1] & 0x80 != 0 else { return 2 + Int(content[1]) }
        let count = Int(content[1] & 0x7F)
        guard content.count >= 2 + count, count <= 3 else { return content.count }
        return 2 + count + content[2..<2 + count].reduce(0) { $0 << 8 | Int($1) }
    }
}

/// Converts the content of a data group into JSON. TR-03110-4 2.
enum DataGroup {
    /// A text becomes a string, several texts an array, and other content hexadecimal digits.
    static func value(_ content: [UInt8]) -> JSON {
        guard let object = try? BERTLV(content) else { return .string(Hex.encode(content)) }
        return value(object, depth: 0)
    }

    private static func value(_ object: BERTLV, depth: Int) -> JSON {
        if object.isConstructed, depth < 8, let children = try? object.children {
            let values = children.map { value($0, depth: depth + 1) }
            return values.count == 1 ? values[0] : .array(values)
        }
        // UTF8String, NumericString, PrintableString, IA5String.
        let isText = [0x0C, 0x12, 0x13, 0x16].contains(object.tag)
        let text = isText ? String(validating: object.value, as: UTF8.self) : nil
        return .string(text ?? Hex.encode(object.value))
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import ISO7816
package import Text

/// The commands of the expedited phase of Aliro 1.0 over NFC.
package enum AliroCommand {
    package static let applicationID: [UInt8] = [0xA0, 0x00, 0x00, 0x09, 0x09, 0xAC, 0xCE, 0x55, 0x01]
    /// The bytes of a transaction identifier.
    package static let transactionLength = 16
    /// The bytes of a reader identifier: group and subgroup, 16 each.
    package static let readerIdentifierLength = 32

    package static let auth0Instruction: UInt8 = 0x80
    package static let auth1Instruction: UInt8 = 0x81
    package static let exchangeInstruction: UInt8 = 0xC9
    package static let controlFlowInstruction: UInt8 = 0x3C

    package static let select = CommandAPDU(0x00, 0xA4, 0x04, 0x00, data: applicationID, le: 256)

    /// AUTH0: opens a tap. The card answers with its ephemeral key.
    package static func auth0(_ opening: AliroOpening) -> CommandAPDU {
        let objects = [
            BERTLV(AliroTag.parameters, [opening.parameters[0]]), BERTLV(AliroTag.policy, [opening.parameters[1]]),
            BERTLV(AliroTag.versions, opening.version),
            BERTLV(AliroTag.readerEphemeral, opening.ephemeral.uncompressed),
            BERTLV(AliroTag.transaction, opening.transaction),
            BERTLV(AliroTag.readerIdentifier, opening.readerIdentifier),
        ]
        return command(auth0Instruction, objects.flatMap(\.encoded))
    }

    /// AUTH1: the reader proves that it has its private key, and requests the card's key.
    package static func auth1(signature: [UInt8]) -> CommandAPDU {
        let objects = [BERTLV(AliroTag.parameters, [0x01]), BERTLV(AliroTag.signature, signature)]
        return command(auth1Instruction, objects.flatMap(\.encoded))
    }

    /// EXCHANGE of an encrypted message.
    package static func exchange(_ sealed: [UInt8]) -> CommandAPDU { command(exchangeInstruction, sealed) }

    /// CONTROL FLOW: the tap has failed before a key was agreed.
    package static let controlFlow = command(
        controlFlowInstruction,
        [BERTLV(AliroTag.parameters, [0x00]), BERTLV(AliroTag.policy, [0x00])].flatMap(\.encoded)
    )

    private static func command(_ instruction: UInt8, _ data: [UInt8]) -> CommandAPDU {
        CommandAPDU(0x80, instruction, 0x00, 0x00, data: data, le: 256)
    }
}

package enum AliroTag {
    package static let file: UInt32 = 0x6F
    package static let name: UInt32 = 0x84
    package static let proprietary: UInt32 = 0xA5
    package static let type: UInt32 = 0x80
    package static let versions: UInt32 = 0x5C
    package static let parameters: UInt32 = 0x41
    package static let policy: UInt32 = 0x42
    package static let transaction: UInt32 = 0x4C
    package static let readerIdentifier: UInt32 = 0x4D
    package static let keySlot: UInt32 = 0x4E
    package static let publicKey: UInt32 = 0x5A
    package static let signalling: UInt32 = 0x5E
    package static let cardEphemeral: UInt32 = 0x86
    package static let readerEphemeral: UInt32 = 0x87
    package static let credentialTime: UInt32 = 0x91
    package static let revocationTime: UInt32 = 0x92
    package static let usage: UInt32 = 0x93
    package static let readerStatus: UInt32 = 0x97
    package static let cryptogram: UInt32 = 0x9D
    package static let signature: UInt32 = 0x9E
    package static let cardVendor: UInt32 = 0xB2
}

/// The status that the reader sends in EXCHANGE at the end of a tap.
package enum AliroStatus: UInt16, Sendable {
    /// No access, without a reason.
    case failed = 0x0000
    /// The credential is read. badged does not know whether the door is locked. The value is that of python-aliro-reader.
    case stateUnknown = 0x0182

    package var message: [UInt8] {
        BERTLV(AliroTag.readerStatus, [UInt8(rawValue >> 8), UInt8(rawValue & 0xFF)]).encoded
    }
}

/// The answer to SELECT.
package struct AliroApplication: Sendable, Equatable {
    /// Such as 0x0100; at least one.
    package let versions: [UInt16]
    /// The object A5 as the card has sent it, an input of all key derivations.
    package let proprietary: [UInt8]

    /// 1.0.
    package static let one: UInt16 = 0x0100
    /// The draft 0.9, with the same messages.
    package static let draft: UInt16 = 0x0009
    private static let maximumVersions = 16

    /// Reads the object 6F with the name of the application and A5. Other objects are skipped.
    ///
    /// The result is nil for any other answer.
    package init?(selectAnswer bytes: [UInt8]) {
        guard let files = try? BERTLV.sequence(bytes).filter({ $0.tag == AliroTag.file }), files.count == 1,
            let objects = EncodedObject.sequence(files[0].value)
        else { return nil }
        let names = objects.filter { $0.object.tag == AliroTag.name }
        let templates = objects.filter { $0.object.tag == AliroTag.proprietary }
        guard names.count == 1, names[0].object.value == AliroCommand.applicationID, templates.count == 1,
            let lists = try? templates[0].object.children.filter({ $0.tag == AliroTag.versions }), lists.count == 1
        else { return nil }
        let list = lists[0].value
        guard !list.isEmpty, list.count.isMultiple(of: 2), list.count <= 2 * Self.maximumVersions else { return nil }
        versions = stride(from: 0, to: list.count, by: 2).map { UInt16(list[$0]) << 8 | UInt16(list[$0 + 1]) }
        proprietary = templates[0].bytes
    }

    /// The version for AUTH0: 1.0 if the card lists it, else 0.9; nil for a card without both.
    package var version: [UInt8]? {
        [Self.one, Self.draft].first(where: versions.contains).map { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
    }
}

/// An object with the bytes that it was read from, because a length may have several encodings.
struct EncodedObject {
    let object: BERTLV
    let bytes: [UInt8]

    /// Reads all objects; nil if the bytes are malformed.
    static func sequence(_ bytes: [UInt8]) -> [EncodedObject]? {
        var reader = BERReader(bytes)
        var objects: [EncodedObject] = []
        while !reader.isAtEnd {
            let rest = reader.remainder
            guard let object = try? reader.next() else { return nil }
            objects.append(EncodedObject(object: object, bytes: Array(rest.dropLast(reader.remainder.count))))
        }
        return objects
    }
}

/// The answer to AUTH0.
package struct AliroOpeningAnswer: Sendable, Equatable {
    /// The ephemeral key of the card: 65 bytes, not checked yet.
    package let point: [UInt8]
    /// 64 bytes; nil: the card does not support the fast phase.
    package let cryptogram: [UInt8]?
    /// The object B2 as the card has sent it; empty without it.
    package let vendor: [UInt8]

    package static let cryptogramLength = 64
    private static let maximumVendor = 127

    /// Unknown objects are skipped.
    /// - Throws: `AliroProblem.malformed`.
    package init(_ bytes: [UInt8]) throws(AliroProblem) {
        guard let objects = EncodedObject.sequence(bytes) else { throw .malformed }
        let points = objects.filter { $0.object.tag == AliroTag.cardEphemeral }
        let cryptograms = objects.filter { $0.object.tag == AliroTag.cryptogram }
        let vendors = objects.filter { $0.object.tag == AliroTag.cardVendor }
        guard points.count == 1, points[0].object.value.count == 65, cryptograms.count <= 1, vendors.count <= 1,
            cryptograms.allSatisfy({ $0.object.value.count == Self.cryptogramLength }),
            vendors.allSatisfy({ $0.object.value.count <= Self.maximumVendor })
        else { throw .malformed }
        point = points[0].object.value
        cryptogram = cryptograms.first?.object.value
        vendor = vendors.first?.bytes ?? []
    }
}

/// The decrypted answer to AUTH1.
package struct AliroProof: Sendable, Equatable {
    /// The key of the card, 65 bytes, not checked yet; nil: the card sends only a number that identifies its key.
    package let point: [UInt8]?
    /// r and s, 32 bytes each.
    package let signature: [UInt8]

    /// Unknown objects are skipped.
    /// - Throws: `AliroProblem.malformed`.
    package init(_ plain: borrowing Secret) throws(AliroProblem) {
        let read = plain.withBytes { try? BERTLV.sequence($0) }
        guard let objects = read else { throw .malformed }
        func values(_ tag: UInt32) -> [[UInt8]] { objects.filter { $0.tag == tag }.map(\.value) }
        let (points, slots, signatures) = (
            values(AliroTag.publicKey), values(AliroTag.keySlot), values(AliroTag.signature)
        )
        // Drafts have one byte of signalling.
        guard signatures.count == 1, signatures[0].count == 64, points.count <= 1,
            points.allSatisfy({ $0.count == 65 }),
            slots.count <= 1, slots.allSatisfy({ $0.count == 8 }), !(points + slots).isEmpty,
            values(AliroTag.signalling).allSatisfy({ (1...2).contains($0.count) }),
            (values(AliroTag.credentialTime) + values(AliroTag.revocationTime)).allSatisfy({ $0.count == 20 })
        else { throw .malformed }
        point = points.first
        signature = signatures[0]
    }

    /// Whether the plain text of a cryptogram has its form: signalling and two times.
    static func isCryptogram(_ plain: borrowing Secret) -> Bool {
        let read = plain.withBytes { try? BERTLV.sequence($0) }
        guard let objects = read else { return false }
        return objects.map(\.tag) == [AliroTag.signalling, AliroTag.credentialTime, AliroTag.revocationTime]
            && objects.map(\.value.count) == [2, 20, 20]
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816

/// The commands of PKOC over NFC. PKOC NFC 1.1 (now SE V1) and 2.0.1 (SE V2).
package enum PKOCCommand {
    package static let applicationID: [UInt8] = [0xA0, 0x00, 0x00, 0x08, 0x98, 0x00, 0x00, 0x01]
    /// The bytes of a transaction identifier (SE V1).
    package static let transactionLength = 16
    /// The bytes of a challenge (SE V2).
    package static let challengeLength = 32

    package static let authenticateInstruction: UInt8 = 0x80
    package static let getDataInstruction: UInt8 = 0xCA
    package static let internalAuthenticateInstruction: UInt8 = 0x88

    package static let select = CommandAPDU(0x00, 0xA4, 0x04, 0x00, data: applicationID, le: 256)
    /// GET DATA of the versions of SE V2.
    package static let getInformation = CommandAPDU(0x00, getDataInstruction, 0x7F, 0x63, le: 256)
    package static let getCertificate = CommandAPDU(0x00, getDataInstruction, 0x7F, 0x21, le: 256)

    /// AUTHENTICATE of SE V1: the card signs the transaction identifier.
    package static func authenticate(
        version: [UInt8],
        transaction: [UInt8],
        readerIdentifier: [UInt8]
    ) -> CommandAPDU {
        let objects = [
            BERTLV(PKOCTag.versions, version), BERTLV(PKOCTag.transaction, transaction),
            BERTLV(PKOCTag.readerIdentifier, readerIdentifier),
        ]
        return CommandAPDU(
            0x80,
            authenticateInstruction,
            0x00,
            0x01,
            data: objects.flatMap(\.encoded),
            le: 256
        )
    }

    /// INTERNAL AUTHENTICATE of SE V2: the card signs the challenge.
    package static func internalAuthenticate(_ challenge: [UInt8]) -> CommandAPDU {
        CommandAPDU(0x00, internalAuthenticateInstruction, 0x00, 0x00, data: challenge, le: 256)
    }
}

package enum PKOCTag {
    package static let versions: UInt32 = 0x5C
    package static let transaction: UInt32 = 0x4C
    package static let readerIdentifier: UInt32 = 0x4D
    package static let publicKey: UInt32 = 0x5A
    package static let signature: UInt32 = 0x9E
    package static let information: UInt32 = 0x7F63
    /// The public key in a certificate.
    static let certificateKey: UInt32 = 0x7F49
}

/// The versions that a card lists, two bytes each.
package struct PKOCVersions: Sendable, Equatable {
    /// Such as 0x0100; at least one.
    package let values: [UInt16]

    /// The version that every card supports.
    package static let one: UInt16 = 0x0100
    /// SE V2.
    package static let two: UInt16 = 0x0200
    private static let maximum = 16

    /// Reads the answer to SELECT: an object 5C, and perhaps others.
    ///
    /// The result is nil for any other answer, also for the empty answer of cards with the EV profile.
    package init?(selectAnswer bytes: [UInt8]) {
        guard let objects = try? BERTLV.sequence(bytes) else { return nil }
        let lists = objects.filter { $0.tag == PKOCTag.versions }
        guard lists.count == 1 else { return nil }
        self.init(lists[0].value)
    }

    /// Reads the answer to GET DATA 7F63; nil for any other answer.
    package init?(information bytes: [UInt8]) {
        guard let outer = try? BERTLV(bytes), outer.tag == PKOCTag.information else { return nil }
        self.init(selectAnswer: outer.value)
    }

    private init?(_ list: [UInt8]) {
        guard !list.isEmpty, list.count.isMultiple(of: 2), list.count <= 2 * Self.maximum else { return nil }
        values = stride(from: 0, to: list.count, by: 2).map { UInt16(list[$0]) << 8 | UInt16(list[$0 + 1]) }
    }

    /// The version for AUTHENTICATE: 1.0 if the card lists it, else the first 1.x; nil for a card without 1.x.
    package var forAuthenticate: [UInt8]? {
        let version = values.contains(Self.one) ? Self.one : values.first { $0 >> 8 == 1 }
        return version.map { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
    }
}

/// The answer to AUTHENTICATE or INTERNAL AUTHENTICATE.
package struct PKOCProof: Sendable, Equatable {
    /// 65 bytes, not checked yet; nil in SE V2, where the certificate has the key.
    package let point: [UInt8]?
    /// r and s, 32 bytes each.
    package let signature: [UInt8]

    /// Reads the objects 5A and 9E, in any order; unknown objects between them are skipped.
    /// - Throws: `PKOCProblem.malformed`.
    package init(_ bytes: [UInt8], hasKey: Bool) throws(PKOCProblem) {
        guard let objects = try? BERTLV.sequence(bytes) else { throw .malformed }
        let points = objects.filter { $0.tag == PKOCTag.publicKey }
        let signatures = objects.filter { $0.tag == PKOCTag.signature }
        guard signatures.count == 1, signatures[0].value.count == 64, points.count <= 1,
            !hasKey || points.first?.value.count == 65
        else { throw .malformed }
        point = hasKey ? points.first?.value : nil
        signature = signatures[0].value
    }
}

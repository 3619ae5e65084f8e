// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
package import ISO7816

/// Why a document cannot be read. A document that can be read but not believed is no error.
package enum DocumentError: Error, Sendable, Equatable {
    /// No answer came, or the task was cancelled.
    case card(CardError)
    /// The chip has no application for documents.
    case notADocument
    /// The chip refused the MRZ or CAN.
    case wrongPassword(StatusWord)
    /// The chip offers nothing that is supported, or nothing that the given password opens.
    case accessUnsupported
    /// PACE failed, though not for the password. BAC is not tried, since somebody in between may have broken PACE.
    case accessRefused(String)
    /// The chip refused BAC, though not for the password; perhaps because it has none.
    case basicAccessRefused(StatusWord)
    /// A file is refused with this status word.
    case refused(DocumentFile, StatusWord)
    /// The content of a file is wrong.
    case malformed(DocumentFile)
    /// The chip breaks a protocol; words for the log without data of the holder.
    case protocolViolation(String)

    /// Whether one file cannot be read, and others perhaps can.
    var isOfFile: Bool {
        switch self {
        case .refused, .malformed: true
        case .card, .notADocument, .wrongPassword, .accessUnsupported, .accessRefused, .basicAccessRefused,
            .protocolViolation:
            false
        }
    }

    /// Whether an answer did not come, or is not the chip's own.
    var isOfAnswer: Bool {
        switch self {
        case .card(.mute), .card(.other), .protocolViolation: true
        case .card, .notADocument, .wrongPassword, .accessUnsupported, .accessRefused, .basicAccessRefused, .refused,
            .malformed:
            false
        }
    }

    /// Whether one disturbed answer may be the cause, so that the document is to be read once more.
    package var mayBeDisturbance: Bool {
        switch self {
        case .card(.mute), .card(.other), .notADocument, .accessRefused, .basicAccessRefused, .refused, .malformed,
            .protocolViolation:
            true
        case .card, .wrongPassword, .accessUnsupported: false
        }
    }

    /// Tells why a step in a channel failed.
    init(_ error: ChipError) {
        self =
            switch error {
            case .card(let error): .card(error)
            case .status(let status): .protocolViolation("the chip has ended the channel with \(status)")
            case .protocolViolation(let words), .unsupported(let words): .protocolViolation(words)
            }
    }
}

/// A file of a chip. ICAO 9303-10 3.
package enum DocumentFile: Sendable, Hashable, CustomStringConvertible {
    case cardAccess
    case cardSecurity
    case com
    case sod
    /// A data group, 1 to 16.
    case group(Int)

    /// The short identifier. ICAO 9303-10 3.9, 4.
    package var shortID: UInt8 {
        switch self {
        case .cardAccess: 0x1C
        case .cardSecurity, .sod: 0x1D
        case .com: 0x1E
        case .group(let number): UInt8(truncatingIfNeeded: number) & 0x1F
        }
    }

    /// The tag of the content.
    package var tag: UInt32 {
        switch self {
        case .cardAccess: 0x31
        case .cardSecurity: 0x30
        case .com: 0x60
        case .sod: 0x77
        case .group(let number): Self.groupTags.indices.contains(number) ? Self.groupTags[number] : 0
        }
    }

    /// The tags of the data groups; the index is the number.
    package static let groupTags: [UInt32] = [
        0, 0x61, 0x75, 0x63, 0x76, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6A, 0x6B, 0x6C, 0x6D, 0x6E, 0x6F, 0x70,
    ]

    package var description: String {
        switch self {
        case .cardAccess: "EF.CardAccess"
        case .cardSecurity: "EF.CardSecurity"
        case .com: "EF.COM"
        case .sod: "EF.SOD"
        case .group(let number): "DG\(number)"
        }
    }
}

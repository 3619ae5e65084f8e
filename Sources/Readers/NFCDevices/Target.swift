// SPDX-License-Identifier: GPL-3.0-or-later
package import CNFC

/// A card that the chip has found and that is not yet activated.
package enum Target: Sendable, Equatable {
    /// UID of 4, 7 or 10 bytes; SAK.
    case a(identifier: [UInt8], selectAnswer: UInt8)
    case b(ATQB)
    /// The chip returned fields that no card can have.
    case malformed(isTypeB: Bool)

    /// Reads libnfc's structure. Its lengths come from the chip and are not trusted.
    package init(_ target: nfc_target) {
        self = withUnsafePointer(to: target) { target in
            if cnfc_is_type_b(target) != 0 {
                var fields = [UInt8](repeating: 0, count: 11)
                fields.withUnsafeMutableBufferPointer { cnfc_type_b(target, $0.baseAddress) }
                let answer = try? ATQB(
                    identifier: fields[..<4],
                    applicationData: fields[4..<8],
                    protocolInfo: fields[8...]
                )
                return answer.map { .b($0) } ?? .malformed(isTypeB: true)
            }
            var identifier = [UInt8](repeating: 0, count: 10)
            let length = identifier.withUnsafeMutableBufferPointer { cnfc_identifier(target, $0.baseAddress) }
            guard [4, 7, 10].contains(length) else { return .malformed(isTypeB: false) }
            return .a(identifier: Array(identifier[..<length]), selectAnswer: cnfc_select_answer(target))
        }
    }

    var isTypeB: Bool {
        switch self {
        case .a: false
        case .b: true
        case .malformed(let isTypeB): isTypeB
        }
    }

    /// UID or PUPI; nil: the chip returned none.
    var identifier: [UInt8]? {
        switch self {
        case .a(let identifier, _): identifier
        case .b(let answer): answer.identifier
        case .malformed: nil
        }
    }

    /// SAK; nil: the card is of type B, or malformed.
    var selectAnswer: UInt8? {
        guard case .a(_, let selectAnswer) = self else { return nil }
        return selectAnswer
    }

    /// Whether the card supports ISO/IEC 14443-4: bit 6 of SAK, ISO/IEC 14443-3, 6.5.3.4.
    var hasBlockProtocol: Bool {
        switch self {
        case .a(_, let selectAnswer): selectAnswer & 0x20 != 0
        case .b(let answer): answer.hasBlockProtocol
        case .malformed: false
        }
    }
}

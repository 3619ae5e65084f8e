// SPDX-License-Identifier: GPL-3.0-or-later
package import CNFC
package import ISODEP

/// A card that the chip has found, before it is activated.
package enum Target: Sendable, Equatable {
    /// UID, 4, 7 or 10 bytes; SAK.
    case a(identifier: [UInt8], selectAnswer: UInt8)
    case b(ATQB)
    /// One that makes no sense; the chip, or a card, lies.
    case malformed(isTypeB: Bool)

    /// Whatever is in it: the lengths come from a chip that has them from a card.
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

    /// Does it speak ISO/IEC 14443-4? Bit 6 of SAK; ISO/IEC 14443-3, 6.5.3.4.
    var hasBlockProtocol: Bool {
        switch self {
        case .a(_, let selectAnswer): selectAnswer & 0x20 != 0
        case .b(let answer): answer.hasBlockProtocol
        case .malformed: false
        }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
package import ISO7816
package import Text

/// A certificate holder authorization template: the role of the holder and what it may do. TR-03110-3 C.4.
package struct CHAT: Sendable, Hashable {
    /// The type of terminal; the raw value is the last number of the object identifier.
    package enum TerminalType: UInt8, Sendable, CaseIterable {
        case inspectionSystem = 1
        case authenticationTerminal
        case signatureTerminal

        /// The length of the discretionary data in bytes.
        var length: Int {
            switch self {
            case .inspectionSystem, .signatureTerminal: 1
            case .authenticationTerminal: 5
            }
        }
    }

    /// The role of the holder: the two most significant bits of the discretionary data.
    package enum Role: UInt8, Sendable, CaseIterable {
        case terminal = 0
        case documentVerifierNonOfficial
        case documentVerifierOfficial
        case cvca

        /// Whether a holder of this role may certify a holder of `role`. TR-03110-3 2.2.
        package func mayIssue(_ role: Role) -> Bool {
            switch self {
            case .cvca: role != .terminal
            case .documentVerifierOfficial, .documentVerifierNonOfficial: role == .terminal
            case .terminal: false
            }
        }
    }

    package let terminalType: TerminalType
    package let role: Role
    /// The discretionary data without the role; the `AccessRights` of an authentication terminal.
    package let authorization: UInt64

    package init(_ terminalType: TerminalType = .authenticationTerminal, _ role: Role, authorization: UInt64) {
        self.terminalType = terminalType
        self.role = role
        self.authorization = authorization & (1 << UInt64(terminalType.length * 8 - 2) - 1)
    }

    /// Makes the template of an authentication terminal.
    package init(_ role: Role, _ rights: AccessRights) {
        self.init(.authenticationTerminal, role, authorization: rights.rawValue)
    }

    /// Reads the object 7F4C.
    /// - Throws: `Malformed`.
    package init(_ object: BERTLV) throws(Malformed) {
        guard object.tag == 0x7F4C else { throw Malformed("authorization template with a wrong tag") }
        let parts = try Malformed.at("authorization template", object.children)
        guard parts.count == 2, parts[0].tag == 0x06, parts[1].tag == 0x53,
            parts[0].value.dropLast() == OID.roles[...],
            let type = parts[0].value.last.flatMap(TerminalType.init(rawValue:))
        else { throw Malformed("authorization template of an unknown kind") }
        let data = parts[1].value
        guard let first = data.first, data.count == type.length, let role = Role(rawValue: first >> 6) else {
            throw Malformed("authorization of a wrong length")
        }
        self.init(type, role, authorization: data.reduce(0) { $0 << 8 | UInt64($1) })
    }

    /// The object 7F4C.
    package var object: BERTLV {
        let length = terminalType.length
        let bits = authorization | UInt64(role.rawValue) << UInt64(length * 8 - 2)
        let data = (0..<length).reversed().map { UInt8(truncatingIfNeeded: bits >> UInt64($0 * 8)) }
        return BERTLV(0x7F4C, [BERTLV(0x06, OID.roles + [terminalType.rawValue]), BERTLV(0x53, data)])
    }

    /// The rights of an authentication terminal; empty for other terminals.
    package var rights: AccessRights {
        terminalType == .authenticationTerminal ? AccessRights(rawValue: authorization) : []
    }
}

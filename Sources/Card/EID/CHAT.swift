// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816

/// Certificate holder authorization template: who holds a CV certificate and what it allows. TR-03110-3 C.4.
package struct CHAT: Sendable, Hashable {
    /// The object identifier of the template, 0.4.0.127.0.7.3.1.2.n.
    package enum TerminalType: UInt8, Sendable, CaseIterable {
        case inspectionSystem = 1
        case authenticationTerminal
        case signatureTerminal

        /// Bytes of the discretionary data.
        var length: Int {
            switch self {
            case .inspectionSystem, .signatureTerminal: 1
            case .authenticationTerminal: 5
            }
        }

        static let family: [UInt8] = [0x04, 0x00, 0x7F, 0x00, 0x07, 0x03, 0x01, 0x02]
    }

    /// The two most significant bits of the discretionary data.
    package enum Role: UInt8, Sendable, CaseIterable {
        case terminal = 0
        case documentVerifierNonOfficial
        case documentVerifierOfficial
        case cvca

        /// May a holder of this role certify a holder of that one? TR-03110-3 2.2.
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
    /// The relative authorization, without the role: `AccessRights` for an authentication terminal.
    package let authorization: UInt64

    package init(_ terminalType: TerminalType = .authenticationTerminal, _ role: Role, authorization: UInt64) {
        (self.terminalType, self.role) = (terminalType, role)
        self.authorization = authorization & (1 << UInt64(terminalType.length * 8 - 2) - 1)
    }

    /// The template of an authentication terminal.
    package init(_ role: Role, _ rights: AccessRights) {
        self.init(.authenticationTerminal, role, authorization: rights.rawValue)
    }

    /// Reads the object 7F4C.
    /// - Throws: `CVCertificateError.malformed`.
    package init(_ object: BERTLV) throws(CVCertificateError) {
        guard object.tag == 0x7F4C else { throw .malformed("authorization template has another tag") }
        let parts = try CVCertificateError.reading("authorization template") { () throws(BERError) in
            try object.children
        }
        guard parts.count == 2, parts[0].tag == 0x06, parts[1].tag == 0x53,
            parts[0].value.dropLast() == TerminalType.family[...],
            let type = parts[0].value.last.flatMap(TerminalType.init(rawValue:))
        else { throw .malformed("authorization template of no known kind") }
        let data = parts[1].value
        guard let first = data.first, data.count == type.length, let role = Role(rawValue: first >> 6) else {
            throw .malformed("authorization of a wrong length")
        }
        self.init(type, role, authorization: data.reduce(0) { $0 << 8 | UInt64($1) })
    }

    /// The object 7F4C.
    package var object: BERTLV {
        let length = terminalType.length
        let bits = authorization | UInt64(role.rawValue) << UInt64(length * 8 - 2)
        let data = (0..<length).reversed().map { UInt8(truncatingIfNeeded: bits >> UInt64($0 * 8)) }
        return BERTLV(0x7F4C, [BERTLV(0x06, TerminalType.family + [terminalType.rawValue]), BERTLV(0x53, data)])
    }

    /// What an authentication terminal may do; none for other terminals.
    package var rights: AccessRights {
        terminalType == .authenticationTerminal ? AccessRights(rawValue: authorization) : []
    }
}

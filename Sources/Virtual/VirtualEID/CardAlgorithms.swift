// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import EID
import ISO7816

/// The algorithms of a card, as its EF.CardAccess and EF.CardSecurity announce them.
struct CardAlgorithms {
    struct ChipAuthenticationKey {
        /// The content of the object identifier.
        var protocolID: [UInt8]
        var keyID: Int
        /// Only for privileged terminals, since the key identifies the card.
        var isPrivileged: Bool
    }

    private(set) var pace: [PACEParameters] = []
    private(set) var chipAuthentication: [ChipAuthenticationKey] = []
    /// The keys for restricted identification that need the right to it; nil when the card does not announce them.
    private var authorizedOnly: Set<Int>?

    /// Reads the files. Files that cannot be parsed announce nothing.
    init(_ files: CardFileSystem) {
        if let access = files[CardFileSystem.cardAccess], let infos = try? SecurityInfos(access) {
            pace = infos.pace.compactMap(\.eidParameters)
            add(infos, isPrivileged: false)
            for object in Self.privileged(in: access) {
                if let infos = try? SecurityInfos(object) { add(infos, isPrivileged: true) }
            }
        }
        if let security = files[CardFileSystem.cardSecurity], let infos = try? CardSecurity(security).securityInfos {
            let restricted = infos.restrictedIdentification
            authorizedOnly = restricted.isEmpty ? nil : Set(restricted.filter(\.isAuthorizedOnly).map(\.keyID))
        }
    }

    func isAuthorizedOnly(_ keyID: Int) -> Bool { authorizedOnly?.contains(keyID) ?? true }

    private mutating func add(_ infos: SecurityInfos, isPrivileged: Bool) {
        for info in infos.chipAuthentication where info.version == 2 {
            guard let keyID = info.keyID else { continue }
            chipAuthentication.append(.init(protocolID: info.protocolID, keyID: keyID, isPrivileged: isPrivileged))
        }
    }

    /// The SET of each PrivilegedTerminalInfo. TR-03110-3 A.1.1.7.
    private static func privileged(in access: [UInt8]) -> [[UInt8]] {
        var reader = BERReader(access)
        guard let infos = try? reader.next().children else { return [] }
        return infos.compactMap { info in
            guard let fields = try? info.children, fields.count == 2,
                fields[0] == BERTLV(0x06, OID.bsi + [2, 2, 8])
            else { return nil }
            return fields[1].encoded
        }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later

/// By what a reader is known again. The first that applies counts; only the first two last longer than a visit.
package enum ReaderIdentity: Hashable, Sendable {
    /// What an Aliro reader says about itself, under whatever address.
    case aliro(ReaderFacts.AliroReader)
    /// A public or static address.
    case address(DeviceAddress)
    /// Profile, lock service code and name of a sender whose address changes: good enough to bridge a change of the
    /// address, as long as the other address has fallen silent.
    case fingerprint(ReaderProfile, Int?, String)
    /// A changing address and nothing else.
    case ephemeral(DeviceAddress)

    /// Names that say nothing, for many readers have them.
    private static let commonNames: Set<String> = ["Seos", "Aliro", "PKOC"]

    init(_ address: DeviceAddress, _ facts: ReaderFacts, _ profile: ReaderProfile, code: Int?, name: String?) {
        if let aliro = facts.aliroReader {
            self = .aliro(aliro)
        } else if address.isStable {
            self = .address(address)
        } else if let name, !Self.commonNames.contains(name) {
            self = .fingerprint(profile, code, name)
        } else {
            self = .ephemeral(address)
        }
    }

    /// The name by which clients speak of it. `number` tells apart those that have no name of their own.
    func text(_ profile: ReaderProfile, number: Int) -> String {
        switch self {
        case .aliro(let reader):
            "aliro-" + Self.hex(reader.group, 16) + "-" + Self.hex(UInt64(reader.subGroup), 4)
        case .address(let address): "\(profile.rawValue)-\(address)"
        case .fingerprint(let profile, let code, let name):
            "\(profile.rawValue)-" + (code.map { "\($0)-" } ?? "") + name
        case .ephemeral: "\(profile.rawValue)-passing-\(number)"
        }
    }

    private static func hex(_ value: UInt64, _ digits: Int) -> String {
        let text = String(value, radix: 16)
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
}

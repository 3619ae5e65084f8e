// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// How a reader is recognised again. The first case that applies is used.
package enum ReaderIdentity: Hashable, Sendable {
    /// Group and sub-group of an Aliro reader, which stay the same under every address.
    case aliro(DecodedAdvertisement.AliroAdvertisement)
    /// A public or static address.
    case address(DeviceAddress)
    /// The name of the identity resolving key that resolves the address.
    case resolved(ReaderProfile, String)
    /// Profile, lock service code and name of a reader with a changing address. This identity joins two addresses only
    /// when nothing is received from the first one any more. Readers that share a code are compared by all their codes.
    case fingerprint(ReaderProfile, Int?, String)
    /// A changing address without anything else that identifies the reader.
    case ephemeral(DeviceAddress)

    /// Names that many readers share.
    private static let commonNames: Set<String> = ["Seos", "Aliro", "PKOC"]

    /// Chooses the first case that applies. `key` is the name of the key that resolves the address. Of the lock service codes, the first one becomes a part of the identity.
    init(
        _ address: DeviceAddress,
        _ profile: ReaderProfile,
        _ aliro: DecodedAdvertisement.AliroAdvertisement?,
        codes: [Int],
        name: String?,
        key: String? = nil
    ) {
        if let aliro {
            self = .aliro(aliro)
        } else if let key {
            self = .resolved(profile, key)
        } else if address.isStable {
            self = .address(address)
        } else if let name, !Self.commonNames.contains(name) {
            self = .fingerprint(profile, codes.first, name)
        } else {
            self = .ephemeral(address)
        }
    }

    /// The identifier that clients see. `number` makes readers without a name unique.
    func text(_ profile: ReaderProfile, number: Int) -> String {
        switch self {
        case .aliro(let reader):
            "aliro-" + Hex.encode(reader.group) + "-" + Hex.encode(reader.subGroup)
        case .resolved(let profile, let name): "\(profile.rawValue)-irk-\(name)"
        case .address(let address): "\(profile.rawValue)-\(address)"
        case .fingerprint(let profile, let code, let name):
            "\(profile.rawValue)-" + (code.map { "\($0)-" } ?? "") + name
        case .ephemeral: "\(profile.rawValue)-passing-\(number)"
        }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import Text

/// The identity resolving key (IRK) of a reader whose address changes. Its holder recognises the reader under every
/// resolvable address. Bluetooth Core, Vol 3, Part H, 2.2.2.
package final class IdentityKey: Sendable {
    /// Programs write the bytes of a key in two orders, and do not say in which.
    package enum Order: String, Sendable, CaseIterable {
        case mostSignificantFirst
        case leastSignificantFirst
    }

    package static let count = 16

    package let name: String
    /// The key as AES takes it, if it was written in each order.
    private let mostSignificantFirst: Secret
    private let leastSignificantFirst: Secret

    /// Creates a key from its 16 bytes in any order; nil for another number of bytes.
    package init?(_ name: String, _ bytes: borrowing Secret) {
        guard bytes.count == Self.count else { return nil }
        self.name = name
        mostSignificantFirst = bytes.clone()
        leastSignificantFirst = bytes.withBytes { Secret($0.reversed()) }
    }

    /// The order in which the key was written, if the address is one of this key; nil if it is not. One address of another
    /// device in eight million fits by chance.
    package func resolve(_ address: DeviceAddress) -> Order? {
        guard address.kind == .resolvable else { return nil }
        let random = (0..<3).map { UInt8(truncatingIfNeeded: address.bits >> (40 - 8 * $0)) }
        let hash = (0..<3).map { UInt8(truncatingIfNeeded: address.bits >> (16 - 8 * $0)) }
        let block = [UInt8](repeating: 0, count: 13) + random
        func fits(_ key: borrowing Secret) -> Bool {
            (try? AES.encrypt(block, key: key))?.suffix(3).elementsEqual(hash) == true
        }
        if fits(mostSignificantFirst) { return .mostSignificantFirst }
        return fits(leastSignificantFirst) ? .leastSignificantFirst : nil
    }
}

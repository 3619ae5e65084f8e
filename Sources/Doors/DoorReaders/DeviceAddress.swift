// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// The address of a Bluetooth LE device. Bluetooth Core, Vol 6, Part B, 1.3.
package struct DeviceAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address in the low 48 bits, first written byte highest; bit 48 is set for a random address.
    package let bits: UInt64

    package enum Kind: String, Sendable, CaseIterable {
        case `public`
        /// Random and constant, at least until the device is switched off.
        case `static`
        /// Random and changed every few minutes; a holder of the device's key can resolve the address.
        case resolvable
        case nonresolvable
    }

    private static let randomBit: UInt64 = 1 << 48

    package init(bits: UInt64, isRandom: Bool) {
        self.bits = bits & (Self.randomBit - 1) | (isRandom ? Self.randomBit : 0)
    }

    /// Reads six bytes at `offset`, least significant first; nil when `bytes` ends before.
    package init?(_ bytes: Span<UInt8>, at offset: Int, isRandom: Bool) {
        guard offset >= 0, offset <= bytes.count - 6 else { return nil }
        var bits: UInt64 = 0
        for index in 0..<6 { bits |= UInt64(bytes[offset + index]) << (8 * index) }
        self.init(bits: bits, isRandom: isRandom)
    }

    /// Reads an address such as `C0:11:22:33:44:55`, in upper or lower case.
    package init?(_ text: some StringProtocol, isRandom: Bool) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 6 else { return nil }
        var bits: UInt64 = 0
        for part in parts {
            guard let byte = Hex.decode(part, limit: 1)?.first else { return nil }
            bits = bits << 8 | UInt64(byte)
        }
        self.init(bits: bits, isRandom: isRandom)
    }

    package var isRandom: Bool { bits & Self.randomBit != 0 }

    /// The kind, by the two highest bits of a random address. The reserved pattern counts as nonresolvable.
    package var kind: Kind {
        guard isRandom else { return .public }
        switch (bits >> 46) & 3 {
        case 3: return .static
        case 1: return .resolvable
        default: return .nonresolvable
        }
    }

    /// Whether the device keeps this address.
    package var isStable: Bool {
        switch kind {
        case .public, .static: true
        case .resolvable, .nonresolvable: false
        }
    }

    /// The six bytes, least significant first.
    package var bytes: [UInt8] { (0..<6).map { UInt8(truncatingIfNeeded: bits >> (8 * $0)) } }

    package var description: String {
        bytes.reversed().map { Hex.encode($0) }.joined(separator: ":").uppercased()
    }
}

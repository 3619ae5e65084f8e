// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Glibc

/// Replaces the real address of a device in captures.
///
/// The pseudonym has the same address type. It stays the same for a day, but changes when the daemon restarts, because
/// its key is the random seed of Swift's `Hasher`.
enum AddressPseudonym {
    static func of(_ address: DeviceAddress) -> DeviceAddress {
        var hasher = Hasher()
        hasher.combine(time(nil) / 86_400)
        hasher.combine(address)
        let hash = UInt64(truncatingIfNeeded: hasher.finalize())
        // The two highest bits are the type of a random address.
        let kind: UInt64 = 3 << 46
        return DeviceAddress(bits: hash & ~kind | address.bits & kind, isRandom: address.isRandom)
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Glibc

/// An address that stands for the real address of a device in captures.
///
/// It is of the same kind and stays the same for a day, and no longer than the daemon runs: the key is that of Swift's
/// `Hasher` in this process.
enum AddressPseudonym {
    static func of(_ address: DeviceAddress) -> DeviceAddress {
        var hasher = Hasher()
        hasher.combine(time(nil) / 86_400)
        hasher.combine(address)
        let hash = UInt64(truncatingIfNeeded: hasher.finalize())
        // The two highest bits tell the kind of a random address.
        let kind: UInt64 = 3 << 46
        return DeviceAddress(bits: hash & ~kind | address.bits & kind, isRandom: address.isRandom)
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Glibc

/// Another address in place of a device's own: the same one all day, of the same kind, and of no use after the day or
/// after the end of the daemon. The key is the process's own of Swift's `Hasher`.
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

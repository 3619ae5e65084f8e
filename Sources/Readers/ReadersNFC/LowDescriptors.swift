// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import CNFC
import Glibc

/// Reserves descriptors below 1024 for libnfc.
///
/// libnfc waits in select(2), which cannot use descriptors from 1024 on: the C library ends a process that tries. The
/// server moves the sockets of its clients above 1024.
struct LowDescriptors: ~Copyable {
    private static let firstUnusable: Int32 = 1024
    /// A serial line needs 3 descriptors: its own and a pipe for `nfc_abort_command`. USB devices need none.
    private static let count = 4
    private var places: [Int32] = []

    init() { fill() }

    deinit { for place in places { close(place) } }

    private mutating func fill() {
        while places.count < Self.count {
            let place = clinux_open("/dev/null", O_RDONLY | O_CLOEXEC, 0)
            guard place >= 0, place < Self.firstUnusable else {
                if place >= 0 { close(place) }
                return
            }
            places.append(place)
        }
    }

    /// Calls `body`. What libnfc opens in it gets the reserved descriptors.
    /// - Returns: nil when too few descriptors are reserved.
    mutating func lend<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value? {
        fill()
        guard places.count == Self.count else { return nil }
        // C reads this memory until `cnfc_end_loan`, so it must outlive one call.
        let loan = UnsafeMutableBufferPointer<Int32>.allocate(capacity: places.count)
        _ = loan.initialize(from: places)
        cnfc_lend(loan.baseAddress, Int32(loan.count))
        defer {
            places.removeFirst(Int(cnfc_end_loan()))
            loan.deallocate()
            fill()
        }
        return try body()
    }
}

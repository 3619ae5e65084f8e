// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import CNFC
import Glibc

/// Descriptors that libnfc can use, kept for it whatever else this process opens.
///
/// libnfc waits in select(2), which does not know descriptors from 1024 on, and a program that tries is ended by the C
/// library. Sockets of clients live above; what else is below is not ours to say.
struct LowDescriptors: ~Copyable {
    private static let firstUnusable: Int32 = 1024
    /// A serial line takes 3 of them: itself, and a pipe for `nfc_abort_command`. USB devices need none.
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

    /// Has libnfc open something, which takes these descriptors.
    /// - Returns: nil when there are too few of them.
    mutating func lend<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value? {
        fill()
        guard places.count == Self.count else { return nil }
        // The pointer is read until the loan ends, so it must not be one of a call.
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

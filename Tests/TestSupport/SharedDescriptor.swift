// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// A socket on which several threads work. It is closed with the last of them, so that none ever meets somebody else's
/// that has got the same number since.
final class SharedDescriptor: Sendable {
    let number: Int32

    init(_ number: Int32) { self.number = number }

    deinit { close(number) }

    /// Whoever reads it sees the end.
    func shutDown() { shutdown(number, Int32(SHUT_RDWR)) }
}

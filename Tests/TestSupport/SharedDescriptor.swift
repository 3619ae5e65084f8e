// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// A socket that several threads share. Deinit closes it after the last use, because the kernel reuses the number of a
/// closed descriptor.
final class SharedDescriptor: Sendable {
    let number: Int32

    init(_ number: Int32) { self.number = number }

    deinit { close(number) }

    /// Shuts the socket down; pending reads return end of file.
    func shutDown() { shutdown(number, Int32(SHUT_RDWR)) }
}

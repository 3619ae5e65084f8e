// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// A socket that several threads share. Deinit closes it after the last use, because the kernel reuses the number of a
/// closed descriptor.
package final class SharedDescriptor: Sendable {
    package let number: Int32

    package init(_ number: Int32) { self.number = number }

    deinit { close(number) }

    /// Shuts the socket down; pending reads return end of file.
    package func shutDown() { shutdown(number, Int32(SHUT_RDWR)) }
}

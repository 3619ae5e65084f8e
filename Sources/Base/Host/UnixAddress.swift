// SPDX-License-Identifier: GPL-3.0-or-later
package import Glibc

/// An address of a Unix socket. unix(7).
package struct UnixAddress: Sendable {
    private var storage = sockaddr_un()
    private var length: socklen_t

    /// The longest path in bytes. The field has 108 bytes with the final NUL.
    static let longestPath = 107
    private static let pathOffset = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2

    /// Makes the address of a path; nil if the path is empty, too long or has a NUL.
    package init?(path: String) {
        self.init(bytes: Array(path.utf8), isAbstract: false)
    }

    /// Makes the address from `NOTIFY_SOCKET`: a path, or `@` and a name in the abstract namespace.
    init?(notifySocket: String) {
        if notifySocket.hasPrefix("@") {
            self.init(bytes: [0] + notifySocket.utf8.dropFirst(), isAbstract: true)
        } else if notifySocket.hasPrefix("/") {
            self.init(path: notifySocket)
        } else {
            return nil  // vsock: the manager is outside of this virtual machine
        }
    }

    private init?(bytes: [UInt8], isAbstract: Bool) {
        guard !bytes.isEmpty, bytes.count <= Self.longestPath, isAbstract || !bytes.contains(0) else { return nil }
        storage.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &storage.sun_path) { $0.copyBytes(from: bytes) }
        length = socklen_t(Self.pathOffset + bytes.count + (isAbstract ? 0 : 1))
    }

    package func withPointer<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
        withUnsafePointer(to: storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
package import Glibc
import Text

/// A run of a program beside badged, with a socket to it.
package struct BesideProgram: Sendable {
    package let socket: Int32
    /// The process; nil: systemd has started it.
    package let process: Child?

    /// Starts a program: at the socket of systemd, or as a child.
    /// - Parameters:
    ///   - program: its name.
    ///   - path: the socket at which systemd starts it; nil: it becomes a child of this process.
    ///   - type: the type of the socket.
    /// - Throws: `StartError`, with words for the log.
    package init(_ program: String, at path: String?, _ type: __socket_type) throws(StartError) {
        if let path {
            // A full queue of connections is an error, instead of a wait.
            let flags = SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
            socket = Glibc.socket(AF_UNIX, Int32(type.rawValue | flags), 0)
            process = nil
            guard socket >= 0 else { throw Self.failure("\(SystemError("socket"))") }
            let isConnected = UnixAddress(path: path)?.withPointer { connect(socket, $0, $1) == 0 }
            guard isConnected == true else {
                let error = SystemError("connect")
                close(socket)
                throw Self.failure(Phrase("\(program).socket does not answer: \(error)"))
            }
            return
        }
        guard let file = ChildProcess.path(of: program) else {
            throw Self.failure(Phrase("the program \(program) is missing: install badged again"))
        }
        var pair: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(type.rawValue | SOCK_CLOEXEC.rawValue), 0, &pair) == 0 else {
            throw Self.failure("\(SystemError("socketpair"))")
        }
        defer { close(pair[1]) }
        guard let started = ChildProcess.start(file, [], descriptors: [pair[1]]) else {
            close(pair[0])
            throw Self.failure(Phrase("\(file) cannot be started"))
        }
        socket = pair[0]
        process = Child(started)
    }

    private static func failure(_ words: Phrase) -> StartError {
        StartError(saying: words, hint: Phrase("see badged(8)"), mayPass: true)
    }

    /// Ends the run at once.
    package func end() {
        close(socket)
        process?.end()
    }
}

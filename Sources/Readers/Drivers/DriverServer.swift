// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
package import Host
import Synchronization
import Text

/// The program of a driver, at its end of the socket: it starts without rights, greets badged, and handles its requests.
/// A program that works on the loop gives the socket to a `ProgramChannel` instead of `serve`.
package struct DriverServer: Sendable {
    /// The socket to badged.
    package static let socket = ChildProcess.firstDescriptor
    private let sending = SendLock()

    private final class SendLock: Sendable { let lock = Mutex(()) }

    /// Confines the process, and says hello. Ends the process if badged has not started it.
    /// - Parameters:
    ///   - program: its name.
    ///   - hint: what somebody does who has started it by hand.
    ///   - grace: the milliseconds that its threads have to end it when badged has closed the socket.
    ///   - rights: what the program may still do.
    ///   - prepare: what has to be done with all rights.
    package init(
        _ program: String,
        hint: String,
        grace: Int32,
        rights: Confinement,
        prepare: () throws(StartError) -> Void = {}
    ) {
        signal(SIGPIPE, SIG_IGN)
        ChildProcess.requireSocket(of: program, hint: hint)
        ProcessHardening.apply()
        do throws(StartError) {
            try prepare()
        } catch {
            Log.report(error)
            exit(error.exitCode)
        }
        guard rights.apply(to: program), ChildProcess.endWithSocket(grace: grace) else { exit(1) }
        send(.hello(program: program, version: Version.current))
    }

    /// Sends a message. May be called by all threads.
    package func send(_ report: DriverReport) { send(report.bytes) }

    private func send(_ bytes: [UInt8]) {
        sending.lock.withLock { _ in _ = Glibc.send(Self.socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }
    }

    /// Handles the requests of badged, until badged closes the socket or sends a message that is not as it must be.
    /// - Parameters:
    ///   - answers: whether the program does its work, for the question of badged whether it lives.
    ///   - handle: handles a request. Its answer may come later, from another thread.
    package func serve(answers: () -> Bool, _ handle: (DriverRequest) -> Void) {
        while let message = receive() {
            if message == Heartbeat.message {
                if answers() { send(message) }
            } else if let request = DriverRequest(bytes: message) {
                handle(request)
            } else {
                return
            }
        }
    }

    /// The next message; nil when badged has closed the socket.
    private func receive() -> [UInt8]? {
        withUnsafeTemporaryAllocation(byteCount: DriverMessage.maximumSize, alignment: 1) { buffer in
            var count = 0
            repeat { count = recv(Self.socket, buffer.baseAddress, buffer.count, 0) } while count < 0 && errno == EINTR
            guard count > 0 else { return nil }
            return Array(UnsafeRawBufferPointer(buffer).prefix(count))
        }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Host
import RemoteIFD
import Transfers

/// Everything that meets strangers on a network: names, TLS, HTTP, XML. It shares no memory with badged, which has PINs
/// and keys, and drops all rights but those that a connection needs. systemd starts one for each dialogue, or badged
/// does. Remote readers share one. It ends when badged closes the socket.
@main struct Program {
    private static let name = "badged-network"
    private static let socket = ChildProcess.firstDescriptor

    static func main() {
        signal(SIGPIPE, SIG_IGN)
        ChildProcess.requireSocket(of: name, hint: "see RUN_AUTH in badged(8)")
        ProcessHardening.apply()
        if let fault = TransferJob.fault { ChildProcess.refuse(name, hint: fault) }
        guard ChildProcess.endWithSocket(grace: 0), Confinement.network.apply(to: name) else { exit(1) }
        // The first message says what the job is: its kind follows its length.
        var head = [UInt8](repeating: 0, count: 5)
        guard recv(socket, &head, head.count, Int32(MSG_PEEK) | Int32(MSG_WAITALL)) == head.count else { exit(0) }
        if head[4] >= RemoteJobMessage.firstKind { serveRemoteReaders() }
        TransferJob(socket: socket).serve()
        // exit() would wait for look-ups of names that hang.
        _exit(0)
    }

    private static func serveRemoteReaders() -> Never {
        do throws(SystemError) { try Loop.start() } catch { ChildProcess.refuse(name, hint: error.description) }
        Task { @Loop in
            job = try? RemoteJob(socket: socket) { _exit(0) }
            if job == nil { _exit(1) }
        }
        Loop.park()
    }

    @Loop private static var job: RemoteJob?
}

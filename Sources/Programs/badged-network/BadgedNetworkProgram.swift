// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import Transfers

/// Everything that meets strangers on a network: names, TLS, HTTP, XML. It shares no memory with badged, which has PINs
/// and keys, and drops all rights but those that a connection needs. systemd starts one for each dialogue, or badged
/// does. It ends when badged closes the socket.
@main struct Program {
    private static let name = "badged-network"
    private static let socket = ChildProcess.firstDescriptor

    static func main() {
        signal(SIGPIPE, SIG_IGN)
        ChildProcess.requireSocket(of: name, hint: "see RUN_AUTH in badged(8)")
        ProcessHardening.apply()
        if let fault = TransferJob.fault { ChildProcess.refuse(name, hint: fault) }
        guard Confinement.network.apply(to: name), ChildProcess.endWithSocket(grace: 0) else { exit(1) }
        TransferJob(socket: socket).serve()
        // exit() would wait for look-ups of names that hang.
        _exit(0)
    }
}

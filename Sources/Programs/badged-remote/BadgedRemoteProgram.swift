// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Drivers
import Glibc
import Host
import RemoteDevices

/// The driver of readers over the network: announcements, TLS, WebSockets and the messages of other devices. It shares no
/// memory with badged, which has PINs and keys, and drops all rights but those that connections need. systemd starts it, or
/// badged does; it ends when badged closes the socket.
@main struct Program {
    static func main() {
        let name = "badged-remote"
        _ = DriverServer(name, hint: "configure it in [remote] of badged.conf(5)", grace: 0, rights: .remoteReaders)
        do throws(SystemError) {
            try Loop.start()
        } catch {
            ChildProcess.refuse(name, hint: error.description)
        }
        Task { @Loop in
            program = try? RemoteProgram(socket: DriverServer.socket) { _exit(0) }
            if program == nil { _exit(1) }
        }
        Loop.park()
    }

    @Loop private static var program: RemoteProgram?
}

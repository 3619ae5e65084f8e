// SPDX-License-Identifier: GPL-3.0-or-later
import Drivers
import Glibc
import Host
import NFCDevices
import Readers
import Text

/// The driver of libnfc as a process of its own, so that faults of libnfc cannot reach the memory of the daemon, which
/// has PINs. It drops all rights but those to devices, because libnfc reads bytes from untrusted devices and cards.
/// badged starts it with a socket, and it ends when badged closes the socket.
@main struct Program {
    /// The time in which devices are closed, in milliseconds.
    private static let closeTime: Int32 = 5000

    static func main() {
        // badged decides when the program ends: the devices must be closed first.
        for number in [SIGTERM, SIGINT, SIGHUP] { signal(number, SIG_IGN) }
        let badged = DriverServer(
            "badged-nfc",
            hint: "configure it in [nfc] of badged.conf(5)",
            grace: closeTime,
            rights: .nfcDevices
        ) { () throws(StartError) in
            try NFCLibrary.checkReplacements()
            limitDescriptors()
        }
        let monitor = DeviceMonitor { badged.send(.event($0)) }
        badged.serve(answers: monitor.answers) { request in
            switch request {
            case .look(let devices): monitor.scan(devices)
            case .card(let request, let insertion, let id):
                monitor.perform(request, insertion) { badged.send(.answer(id: id, $0)) }
            case .record(let reader, let id): monitor.record(reader) { badged.send(.answer(id: id, $0)) }
            case .health(let id): badged.send(.health(id: id, []))
            case .progress, .cancel: break
            }
        }
        monitor.stop()
        // exit() would free what threads in libnfc still use.
        _exit(0)
    }

    /// libnfc waits in select(2), and the C library ends a process that passes a descriptor from 1024 on to it.
    private static func limitDescriptors() {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = min(limit.rlim_cur, 1024)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}

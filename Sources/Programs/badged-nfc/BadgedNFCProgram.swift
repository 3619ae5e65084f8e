// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Host
import NFCDevices
import ReadersNFC
import Synchronization
import Text

/// The driver of libnfc as a process of its own, so that faults of libnfc cannot reach the memory of the daemon, which
/// has PINs. It drops all rights but those to devices, because libnfc reads bytes from untrusted devices and cards.
/// badged starts it with a socket, and it ends when badged closes the socket.
@main struct Program {
    private static let socket = ChildProcess.firstDescriptor

    static func main() {
        // badged decides when the program ends: the devices must be closed first.
        for number in [SIGTERM, SIGINT, SIGHUP, SIGPIPE] { signal(number, SIG_IGN) }
        ChildProcess.requireSocket(of: "badged-nfc", hint: "configure it in [nfc] of badged.conf(5)")
        ProcessHardening.apply()
        do throws(StartError) {
            try NFCLibrary.checkReplacements()
        } catch {
            Log.report(error)
            exit(error.exitCode)
        }
        limitDescriptors()
        guard ChildProcess.endWithSocket(grace: closeTime), Confinement.nfcDevices.apply(to: "badged-nfc") else {
            exit(1)
        }
        let sending = Mutex(())
        let sendBytes = { @Sendable (bytes: [UInt8]) in
            sending.withLock { _ in _ = Glibc.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }
        }
        let send = { @Sendable (report: NFCReport) in sendBytes(report.bytes) }
        let monitor = DeviceMonitor { send(.event($0)) }
        while let message = receive() {
            if message == Heartbeat.message {
                if monitor.answers() { sendBytes(message) }
                continue
            }
            guard let request = NFCRequest(bytes: message) else { break }
            switch request {
            case .scan(let devices):
                monitor.scan(devices)
            case .transmit(let id, let insertion, let command):
                monitor.transmit(command, to: insertion) { send(.answer(id: id, $0)) }
            case .release(let id, let insertion, let reset):
                monitor.release(insertion, reset: reset) { send(.released(id: id)) }
            }
        }
        monitor.stop()
        // exit() would free what threads in libnfc still use.
        _exit(0)
    }

    /// The time in which devices are closed, in milliseconds.
    private static let closeTime: Int32 = 2000

    /// The next message; nil when badged has closed the socket.
    private static func receive() -> [UInt8]? {
        withUnsafeTemporaryAllocation(byteCount: NFCMessage.maximumSize, alignment: 1) { buffer in
            var count = 0
            repeat { count = recv(socket, buffer.baseAddress, buffer.count, 0) } while count < 0 && errno == EINTR
            guard count > 0 else { return nil }
            return Array(UnsafeRawBufferPointer(buffer).prefix(count))
        }
    }

    /// libnfc waits in select(2), and the C library ends a process that passes a descriptor from 1024 on to it.
    private static func limitDescriptors() {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = min(limit.rlim_cur, 1024)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}

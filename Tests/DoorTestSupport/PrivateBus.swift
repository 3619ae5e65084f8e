// SPDX-License-Identifier: GPL-3.0-or-later
package import Bluetooth
import CLinux
import Concurrency
import Dispatch
import FoundationEssentials
import Glibc
import TestSupport

/// A dbus-daemon for one test, with a socket in its own folder.
package final class PrivateBus {
    private struct Process: Sendable {
        let folder: String
        let pid: pid_t
        var address: String { "unix:path=\(folder)/bus" }
    }

    struct StartError: Error {}

    private let process: Process
    package var address: String { process.address }

    private init(_ process: Process) { self.process = process }

    /// Starts the bus and returns when it listens. Waits on another thread, because the loop serves other tests meanwhile.
    package static func start() async throws -> PrivateBus {
        let process = try await withCheckedThrowingContinuation { continuation in
            DispatchQueue(label: "bus").async { continuation.resume(with: Result { try launch() }) }
        }
        return PrivateBus(process)
    }

    private static func launch() throws -> Process {
        var template = Array("/tmp/badged-bus.XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw StartError() }
        let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let configuration = """
            <busconfig><type>system</type><listen>unix:path=\(folder)/bus</listen><policy context="default">
            <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
            """
        try Data(configuration.utf8).write(to: URL(filePath: folder + "/bus.conf"))
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw StartError() }
        defer { close(ends[0]) }
        // A program that another test starts must not inherit the pipe.
        for end in ends { clinux_set_cloexec(end) }
        let pid: pid_t
        do {
            // Closed here, so that the read below ends when the daemon does not start.
            defer { close(ends[1]) }
            pid = try Spawn.start(
                ["/usr/bin/dbus-daemon", "--config-file=\(folder)/bus.conf", "--nofork", "--print-address"],
                descriptors: [1: ends[1]]
            )
        }
        // The daemon prints its address when it listens.
        var line = [UInt8](repeating: 0, count: 256)
        guard read(ends[0], &line, line.count) > 0 else { throw StartError() }
        return Process(folder: folder, pid: pid)
    }

    deinit { stop() }

    private var isStopped = false

    package func stop() {
        guard !isStopped else { return }
        isStopped = true
        kill(process.pid, SIGKILL)
        var status: Int32 = 0
        waitpid(process.pid, &status, 0)
        try? FileManager.default.removeItem(atPath: process.folder)
    }
}

/// What the services send that emulate bluetoothd.
extension SystemBus {
    /// Takes the name of bluetoothd, and then calls.
    package func serve(_ take: @escaping @Loop (BusMessage) -> Void) async {
        onMessage = take
        await withCheckedContinuation { continuation in
            call(
                BusMethod(BlueZName.busPath, BlueZName.bus, "RequestName", of: BlueZName.bus),
                arguments: { message in
                    message.append(BlueZName.service)
                    message.append(UInt32(0), "u")
                },
                answer: { _ in continuation.resume() }
            )
        }
    }
}

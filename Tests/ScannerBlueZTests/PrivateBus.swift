// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import FoundationEssentials
import Glibc
import TestSupport

/// A real dbus-daemon for one test, with a socket in a folder of its own.
final class PrivateBus {
    let address: String
    private let folder: String
    private let pid: pid_t

    struct StartError: Error {}

    init() throws {
        var template = Array("/tmp/badged-bus.XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw StartError() }
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        address = "unix:path=\(folder)/bus"
        let configuration = """
            <busconfig><type>system</type><listen>\(address)</listen><policy context="default">
            <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
            """
        try Data(configuration.utf8).write(to: URL(filePath: folder + "/bus.conf"))
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw StartError() }
        defer { for end in ends { close(end) } }
        // Tests beside this one start programs, too, and wait for the end of their output.
        for end in ends { clinux_set_cloexec(end) }
        pid = try Spawn.start(
            ["/usr/bin/dbus-daemon", "--config-file=\(folder)/bus.conf", "--nofork", "--print-address"],
            descriptors: [1: ends[1]]
        )
        // It prints its address when it listens.
        var line = [UInt8](repeating: 0, count: 256)
        guard read(ends[0], &line, line.count) > 0 else { throw StartError() }
    }

    deinit { stop() }

    private var isStopped = false

    func stop() {
        guard !isStopped else { return }
        isStopped = true
        kill(pid, SIGKILL)
        var status: Int32 = 0
        waitpid(pid, &status, 0)
        try? FileManager.default.removeItem(atPath: folder)
    }
}

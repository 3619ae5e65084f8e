// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Glibc
import Host
import NFCTestSupport
import Readers
import TestSupport
import Testing
import Text

@testable import NFCDevices

/// Serial lines that libnfc cannot use.
@Suite("Serial lines for NFC", .timeLimit(.minutes(5)))
struct SerialLineTests {
    @Test("the speed at which a board answers is found")
    func speed() async throws {
        var options = EmulatedPN532.Options()
        options.speed = speed_t(B9600)
        let board = try EmulatedPN532(options)
        let line = SerialLine(path: board.path, speed: 115_200, answerTimeout: 5000)
        // It waits that long at the first speed, on a thread that no other test needs.
        let fault = await withCheckedContinuation { continuation in
            DispatchQueue(label: "line").async { continuation.resume(returning: line.diagnose()) }
        }
        #expect(fault == .speed(9600))
        let connection = try #require(ConnectionString(board.connection))
        let advice = try #require(NFCHealth.check(connection, .speed(9600)).advice)
        #expect(advice.contains("wrong speed: the board answers at 9600 baud"))
    }

    /// Looks for a device as a user other than root. For a process of its own.
    private static func asNobody(_ prepare: (String) throws -> Void) async throws -> (advice: String, path: String) {
        let board = try EmulatedPN532()
        let path = String(cString: try #require(realpath(board.path, nil)))
        try prepare(path)
        if geteuid() == 0 {
            try #require(setgroups(0, nil) == 0 && setgid(65_534) == 0 && setuid(65_534) == 0)
        }
        let (events, continuation) = AsyncStream.makeStream(of: ReaderEvent.self)
        let monitor = DeviceMonitor { continuation.yield($0) }
        monitor.scan(["pn532_uart:\(path)"])
        var advice: Phrase?
        for await case .health(let checks) in events {
            advice = checks.first?.advice
            break
        }
        // The line exists as long as the board.
        return withExtendedLifetime(board) { (advice?.description ?? "", path) }
    }

    @Test("a line without permission is reported, with the group that has access")
    func denied() async {
        await #expect(processExitsWith: .success) {
            var status = stat()
            let (advice, path) = try await SerialLineTests.asNobody { path in
                #expect(chmod(path, 0o060) == 0 && stat(path, &status) == 0)
            }
            let group = status.st_gid == 0 ? nil : getgrgid(status.st_gid).map { String(cString: $0.pointee.gr_name) }
            #expect(advice.contains("badged cannot read and write \(path)"))
            #expect(advice.contains("to group \(group ?? "dialout"), or"))
        }
    }

    @Test("a line that another program has opened exclusively is reported")
    func busy() async {
        await #expect(processExitsWith: .success) {
            let (advice, path) = try await SerialLineTests.asNobody { path in
                let holder = open(path, O_RDWR | O_NOCTTY)
                #expect(holder >= 0 && chmod(path, 0o666) == 0 && ioctl(holder, UInt(TIOCEXCL), 0) == 0)
            }
            #expect(advice.contains("another program uses \(path)"))
        }
    }

    @Test("a lock file of a running program explains a silent line, one of an ended program does not")
    func locked() throws {
        var options = EmulatedPN532.Options()
        options.isSilent = true
        let board = try EmulatedPN532(options)
        let path = String(cString: try #require(realpath(board.path, nil)))
        let locks = String(board.path.dropLast("/pn532".count))
        let lock = "\(locks)/LCK..\(path.split(separator: "/").last ?? "")"
        defer { unlink(lock) }
        let line = SerialLine(path: board.path, speed: 115_200, locks: locks)
        #expect(line.diagnose() == .silent)
        for (process, fault) in [(getpid(), SerialLineFault.busy), (pid_t.max, .silent)] {
            let file = try #require(fopen(lock, "w"))
            let digits = String(process)
            fputs(String(repeating: " ", count: 10 - digits.count) + digits + "\n", file)
            fclose(file)
            #expect(line.diagnose() == fault)
        }
    }
}

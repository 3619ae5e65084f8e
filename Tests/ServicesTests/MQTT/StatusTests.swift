// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import TestSupport
import Testing
import Text

@testable import MQTT

@Suite("The status of badged-mqtt", .timeLimit(.minutes(5)))
struct StatusTests {
    /// Settings with a broker that does not exist.
    private static func settings(_ folder: TemporaryFolder) -> MQTTConfiguration {
        var configuration = MQTTConfiguration()
        configuration.host = "127.0.0.1"
        configuration.port = 1
        configuration.folder = folder.path
        return configuration
    }

    @Test("a running program answers each question, also when nothing has changed")
    func answers() async throws {
        let folder = try TemporaryFolder()
        let settings = Self.settings(folder)
        let mailbox = try EventMailbox()
        let end = OneShot<Publisher.End?>()
        var held = StatusFile(settings) { _ in nil }
        try held.hold()
        let status = held
        _ = startThread {
            let outbox = (try? EventStore(folder: settings.folder, limit: 100)).map { EventOutbox(settings, $0) }
            end.fill(outbox.map { Publisher(settings, mailbox, $0, service: nil, status: status).run() })
        }
        let answers = await withCheckedContinuation { continuation in
            _ = startThread {
                let file = StatusFile(settings) { _ in nil }
                // The machine may be busy, so a question may be too early.
                let answers = (0..<3).map { _ in (0..<40).contains { _ in file.ask() } }
                continuation.resume(returning: answers)
            }
        }
        #expect(answers == [true, true, true])
        #expect(StatusFile(settings) { _ in nil }.read()?["connected"] == .bool(false))
        mailbox.post(.stop)
        #expect(await end.value(whenCancelled: nil) == .stopped)
    }

    @Test("a program that does not read its questions does not answer, whatever its file says")
    func silence() async throws {
        let folder = try TemporaryFolder()
        let settings = Self.settings(folder)
        var status = StatusFile(settings) { _ in nil }
        try status.hold()
        status.write([.init("connected", .bool(true))], at: 0, isLast: true)
        let isAnswered = await withCheckedContinuation { continuation in
            _ = startThread { continuation.resume(returning: StatusFile(settings) { _ in nil }.ask()) }
        }
        #expect(!isAnswered)
        #expect(StatusFile(settings) { _ in nil }.read()?["connected"] == .bool(true))
    }

    @Test("a lock that cannot be looked at does not say that no program runs")
    func lock() throws {
        let folder = try TemporaryFolder()
        let status = StatusFile(Self.settings(folder)) { _ in nil }
        #expect(try !status.isHeld())
        mkdir(folder.path + "/status.lock", 0o700)
        let error = #expect(throws: StartError.self) { try status.isHeld() }
        #expect(error?.message.contains("status.lock") == true)
    }

    @Test("a FIFO, a folder or a link in place of the lock is refused with its reason, and nothing waits")
    func strangeLock() throws {
        for kind in ["FIFO", "folder", "link"] {
            let folder = try TemporaryFolder()
            let path = folder.path + "/status.lock"
            switch kind {
            case "FIFO": #expect(mkfifo(path, 0o600) == 0)
            case "folder": #expect(mkdir(path, 0o700) == 0)
            default: #expect(symlink(try folder.write("other", [UInt8]()), path) == 0)
            }
            var status = StatusFile(Self.settings(folder)) { _ in nil }
            #expect(throws: StartError.self) { try status.isHeld() }
            let error = #expect(throws: StartError.self) { try status.hold() }
            let reason = kind == "link" ? errorText(ELOOP) : "it is not a plain file"
            #expect(error?.message == "cannot use \(path): \(reason)")
        }
    }

    @Test("a FIFO in place of the draft or of the metrics does not hold the program, and the next draft is written")
    func strangeDraft() throws {
        let folder = try TemporaryFolder()
        let path = folder.path
        var status = StatusFile(Self.settings(folder)) { name in name == "RUNTIME_DIRECTORY" ? path : nil }
        #expect(mkfifo(folder.path + "/metrics.json", 0o600) == 0)
        try status.hold()
        #expect(mkfifo(folder.path + "/status.json.new", 0o600) == 0)
        status.write([.init("connected", .bool(true))], at: 0, isLast: true)
        #expect(status.read() == nil)
        status.write([.init("connected", .bool(false))], at: 0, isLast: true)
        #expect(status.read()?["connected"] == .bool(false))
    }

    @Test("without a program nobody answers, and nothing waits")
    func nobody() throws {
        let folder = try TemporaryFolder()
        #expect(!StatusFile(Self.settings(folder)) { _ in nil }.ask())
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
package import Host
package import Text

/// The state of the running program, for `badged-mqtt --status` and `badgectl metrics`.
///
/// The file in the folder of the queue is written when something has changed, at most once a second, and when somebody
/// asks. A lock beside it shows whether a program runs, and a FIFO takes the questions whether it answers. The metrics are a message METRICS in the folder that systemd makes for the service.
package struct StatusFile {
    private let path: String
    private let lockPath: String
    private let questionPath: String
    /// The end of the FIFO at which questions arrive; negative: nobody can ask.
    private(set) var questions: Int32 = -1
    /// The last question.
    private var question: String?
    private let metricsPath: String?
    /// Negative: nobody asks for metrics.
    private var metricsDescriptor: Int32 = -1
    private var written: [JSON.Member]?
    private var writtenAt: Int64 = .min / 2
    /// When the file must be written, in the time of `write`; nil: it is up to date.
    private(set) var due: Int64?

    private static let pause: Int64 = 1000

    package init(_ configuration: MQTTConfiguration, _ environment: Environment = systemEnvironment) {
        path = configuration.folder + "/status.json"
        lockPath = configuration.folder + "/status.lock"
        questionPath = configuration.folder + "/status.ask"
        metricsPath = Self.metricsFolder(environment).map { $0 + "/metrics.json" }
    }

    /// The folder that systemd makes for the service, in which everybody can read.
    package static func metricsFolder(_ environment: Environment = systemEnvironment) -> String? {
        environment("RUNTIME_DIRECTORY").flatMap { $0.hasPrefix("/") && !$0.contains(":") ? $0 : nil }
    }

    /// Replaces the file if the members differ from those in it. A failure is not logged, because the log has the same
    /// state.
    mutating func write(_ members: [JSON.Member], at now: Int64, isLast: Bool) {
        if !isAsked {
            guard members != written else { return due = nil }
            guard isLast || now >= writtenAt + Self.pause else { return due = writtenAt + Self.pause }
        }
        isAsked = false
        written = members
        writtenAt = now
        due = nil
        let answer = question.map { [JSON.Member("question", .string($0))] } ?? []
        let content = members + [.init("time", .number(String(EventStore.now)))] + answer
        replace(JSON.object(content).bytes)
        if metricsDescriptor >= 0 {
            // One call in place, always of the same length.
            let text = Self.metrics(JSON.object(members))
            let padded = text + [UInt8](repeating: 0x20, count: max(0, Self.metricsLength - text.count))
            _ = pwrite(metricsDescriptor, padded, padded.count, 0)
        }
    }

    private static let metricsLength = 2048

    private func replace(_ bytes: [UInt8]) {
        let new = path + ".new"
        // With O_NONBLOCK nothing waits for the other end of a FIFO.
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
        let descriptor = open(new, flags, 0o640)
        var state = stat()
        let isPlain = descriptor >= 0 && fstat(descriptor, &state) == 0 && state.st_mode & S_IFMT == S_IFREG
        let count = isPlain ? Glibc.write(descriptor, bytes, bytes.count) : -1
        if descriptor >= 0 { close(descriptor) }
        // What is there and is no plain file makes room for the next draft.
        if count == bytes.count { rename(new, path) } else { unlink(new) }
    }

    package func read() -> JSON? {
        guard case .bytes(let bytes) = PlainFile.read(path, limit: 65_536) else { return nil }
        return try? JSON(bytes)
    }

    // MARK: Questions

    /// Whether the file is to be written, although nothing has changed.
    private var isAsked = false
    /// The number of characters of a question.
    private static let questionLength = 16
    /// How long a running program may take to answer, in milliseconds.
    private static let answerTime: Int64 = 1500

    /// Takes the questions that have arrived. The file answers the last one at the next `write`.
    mutating func takeQuestions() {
        var bytes = [UInt8](repeating: 0, count: 4096)
        while case let count = Glibc.read(questions, &bytes, bytes.count), count > 0 {
            let last = bytes[..<count].suffix(Self.questionLength)
            question = String(decoding: last.filter { Hex.value($0) != nil }, as: UTF8.self)
        }
        isAsked = true
    }

    /// Asks the running program, and waits for its answer.
    /// - Returns: whether it has answered. Then the file is up to date.
    package func ask() -> Bool {
        let question = Hex.encode(UInt64.random(in: .min ... .max))
        let descriptor = open(questionPath, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        guard Glibc.write(descriptor, question, question.utf8.count) == question.utf8.count else { return false }
        let end = Loop.clock + Self.answerTime * 1000
        while Loop.clock < end {
            if read()?["question"] == .string(question) { return true }
            poll(nil, 0, 10)
        }
        return false
    }

    // MARK: The lock

    /// Takes the lock for the life of the process, and opens the file with the metrics. Call it before the program is
    /// confined.
    /// - Throws: `StartError` if another program has it, or if the folder cannot be written.
    package mutating func hold() throws(StartError) {
        let descriptor: Int32
        switch PlainFile.open(lockPath, flags: O_RDWR | O_CREAT | O_NOFOLLOW) {
        case .file(let opened): descriptor = opened
        case .missing: throw StartError("there is no folder for \(lockPath)", hint: Self.hint)
        case .failed(let reason): throw StartError("cannot use \(lockPath): \(reason)", hint: Self.hint)
        }
        var lock = Self.lock
        guard fcntl(descriptor, F_SETLK, &lock) == 0 else {
            throw StartError("another badged-mqtt uses \(lockPath)", hint: Self.hint)
        }
        unlink(questionPath)
        if mkfifo(questionPath, 0o600) == 0 {
            questions = open(questionPath, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)
        }
        guard let metricsPath else { return }
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW
        guard case .file(let metrics) = PlainFile.open(metricsPath, flags: flags) else { return }
        metricsDescriptor = metrics
        // The files of the service are its own, but for this one.
        fchmod(metrics, 0o644)
    }

    /// Whether a program has the lock.
    /// - Throws: `StartError` if the lock cannot be looked at.
    package func isHeld() throws(StartError) -> Bool {
        func unknown(_ reason: String) -> StartError {
            StartError(
                "cannot see whether badged-mqtt runs: \(lockPath): \(reason)",
                hint: "run this as root or as user badged-mqtt"
            )
        }
        switch PlainFile.open(lockPath, flags: O_RDONLY | O_NOFOLLOW) {
        case .file(let descriptor):
            defer { close(descriptor) }
            var lock = Self.lock
            guard fcntl(descriptor, F_GETLK, &lock) == 0 else { throw unknown(errorText()) }
            return lock.l_type != Int16(F_UNLCK)
        case .missing: return false
        case .failed(let reason): throw unknown(reason)
        }
    }

    private static let hint = "the folder must belong to the user of badged-mqtt, and only one badged-mqtt may use it"

    private static var lock: flock {
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        return lock
    }

    // MARK: Metrics

    /// The message METRICS with what the status says.
    private static func metrics(_ status: JSON) -> [UInt8] {
        func sample(_ value: JSON, _ labels: [JSON.Member] = []) -> JSON {
            .object((labels.isEmpty ? [] : [.init("labels", .object(labels))]) + [.init("value", value)])
        }
        func flag(_ key: String) -> [JSON] { [sample(.number(status[key] == .bool(true) ? "1" : "0"))] }
        func streams(_ key: String) -> [JSON] {
            (status["streams"]?.members ?? []).compactMap { stream in
                stream.value[key].map { sample($0, [.init("stream", .string(stream.key))]) }
            }
        }
        let families: [(name: String, type: String, help: String, samples: [JSON])] = [
            ("badged_mqtt_connected", "gauge", "Whether badged-mqtt is connected to its broker.", flag("connected")),
            ("badged_mqtt_waiting_events", "gauge", "Events without an acknowledgement.", streams("waiting")),
            ("badged_mqtt_lost_events_total", "counter", "Events that were lost.", streams("lost")),
            ("badged_mqtt_durable", "gauge", "Whether the disk stores events.", flag("durable")),
        ]
        let list = families.map { family in
            JSON.object([
                .init("name", .string(family.name)), .init("type", .string(family.type)),
                .init("help", .string(family.help)), .init("samples", .array(family.samples)),
            ])
        }
        return JSON.object([.init("msg", .string("METRICS")), .init("metrics", .array(list))]).bytes
    }
}

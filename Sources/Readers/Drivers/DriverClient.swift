// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Glibc
import Host
import Readers
import Text

/// Runs the program of a driver while it is needed.
@Loop package final class DriverClient {
    private let driver: any Driver
    /// The readers of the program.
    private(set) lazy var session = DriverSession { [weak self] in
        self?.send($0)
    } onEvent: { [weak self] in
        self?.handle($0)
    } onSilence: { [weak self] in
        self?.run?.channel.giveUp()
    }
    private var events: AsyncStream<ReaderEvent>.Continuation?
    /// False when the program must not be started any more.
    private var isActive = false
    /// Counts the streams, so that the end of an old one does not stop a new one.
    private var streamNumber = 0
    private var run: Run?
    /// The program was asked to end.
    private var isEnding = false
    private var reportedChecks: [HealthCheck] = []
    /// Starts the program again after an end that was not wanted.
    private var restart: Loop.Alarm?
    private var backOff = BackOff()
    private let heartbeat: Heartbeat.Times
    private let end = Waiters()

    @Loop private final class Run {
        let channel: ProgramChannel
        /// nil: systemd has started it.
        let process: Child?
        var hasGreeted = false

        init(_ channel: ProgramChannel, _ process: Child?) {
            self.channel = channel
            self.process = process
        }
    }

    /// Milliseconds.
    private static let closeTimeout: Int64 = 700

    nonisolated init(_ driver: any Driver, heartbeat: Heartbeat.Times) {
        self.driver = driver
        self.heartbeat = heartbeat
    }

    /// Whether clients watch readers. Then the program is asked whether it lives.
    package var isWatched = false { didSet { run?.channel.isNeeded = isWatched || driver.isAlwaysAsked } }

    /// Asks the program whether it lives and for its checks, and looks for readers again if there is a fault.
    func currentHealth() async -> [HealthCheck] {
        var checks: [HealthCheck] = []
        if await run?.channel.answers() == true { checks = await session.currentHealth() }
        retry()
        return checks + reportedChecks.filter { fault in !fault.ok && !checks.contains { $0.name == fault.name } }
    }

    /// The process of the program, if it runs as a child of this one.
    package var process: Int32? { run?.process?.id }

    package var isRunning: Bool { run != nil }

    /// Sends a message that is not one of `DriverRequest`, if the program runs.
    package func send(_ message: consuming [UInt8]) { run?.channel.send(message) }

    private func send(_ request: DriverRequest) {
        // A program that has ended meanwhile answers nothing.
        if let run { run.channel.send(request.bytes) } else { session.end() }
    }

    // MARK: Start and end

    func start(_ events: AsyncStream<ReaderEvent>.Continuation) {
        stop()
        streamNumber += 1
        let number = streamNumber
        events.onTermination = { [weak self] _ in
            Task { @Loop in
                if let self, self.streamNumber == number { self.stop() }
            }
        }
        self.events = events
        isActive = true
        reportedChecks = []
        driver.start(self)
        look()
    }

    /// Ends the program and the events, without waiting.
    func stop() {
        stopWatching()
        finish()
        finishEvents()
    }

    /// Ends the program and the events. Returns when the program has released all readers, or after 0.7 s.
    func close() async {
        stopWatching()
        if run != nil {
            finish()
            var isLate = false
            let timeout = Loop.Alarm { [end] in
                isLate = true
                end.check()
            }
            timeout.set(after: Self.closeTimeout)
            await end.wait { self.run == nil || isLate }
        }
        finishEvents()
    }

    private func stopWatching() {
        if isActive { driver.stop() }
        isActive = false
        restart = nil
    }

    private func finishEvents() {
        let events = self.events
        self.events = nil
        events?.finish()
    }

    // MARK: The program

    package func rescan() {
        restart = nil
        look()
    }

    /// Looks for readers again if there is a fault.
    package func retry() {
        if reportedChecks.contains(where: { !$0.ok }) { look() }
    }

    /// Starts or ends the program as needed, and has it look for readers.
    package func look() {
        guard isActive, !isEnding, restart == nil else { return }
        guard driver.isNeeded else {
            finish()
            return report([HealthCheck(driver.name, ok: true)])
        }
        if run == nil { startProgram() }
        run?.channel.send(DriverRequest.look(sources: driver.sources).bytes)
    }

    /// Asks the program to release its readers and to end.
    private func finish() {
        run?.channel.finish()
        isEnding = run != nil
    }

    private func startProgram() {
        do {
            let program = try BesideProgram(driver.program, at: driver.socket, SOCK_SEQPACKET)
            let channel = try ProgramChannel(
                program.socket,
                .packets(maximum: DriverMessage.maximumSize),
                asking: driver.program,
                heartbeat,
                onMessage: { [weak self] in self?.handle($0) ?? false },
                onEnd: { [weak self] in self?.programEnded($0) }
            )
            channel.isNeeded = isWatched || driver.isAlwaysAsked
            run = Run(channel, program.process)
            backOff.started()
            driver.began()
        } catch {
            let words = (error as? StartError)?.message ?? "\(error)"
            report(fault: "the program \(driver.program) cannot be started: \(words)")
        }
    }

    private func programEnded(_ ending: ProgramChannel.Ending) {
        if ending == .silent || !isEnding { run?.process?.end() }
        run = nil
        session.end()
        driver.ended(ending)
        end.check()
        if isEnding {
            // A new stream or a new device may need the program again.
            isEnding = false
            return look()
        }
        let pause = backOff.next()
        let advice: Phrase =
            ending == .silent
            ? "the program \(driver.program) did not answer; it is started again in \(pause / 1000) s"
            : "the program \(driver.program) ended unexpectedly; it is started again in \(pause / 1000) s"
        Log.error("\(advice)")
        report(fault: advice)
        let alarm = Loop.Alarm { [weak self] in self?.rescan() }
        alarm.set(after: pause)
        restart = alarm
    }

    private func report(fault advice: Phrase) { report([HealthCheck(driver.name, ok: false, advice: advice)]) }

    private func report(_ checks: [HealthCheck]) {
        guard checks != reportedChecks else { return }
        reportedChecks = checks
        events?.yield(.health(checks))
    }

    // MARK: Messages

    /// - Returns: whether the message was allowed.
    private func handle(_ message: [UInt8]) -> Bool {
        guard run?.hasGreeted == true else { return greet(message) }
        guard (DriverMessage.firstReport..<DriverMessage.firstOwn).contains(message.first ?? 0) else {
            return driver.handle(message)
        }
        guard let report = DriverReport(bytes: message) else { return false }
        switch report {
        case .event(.added(let reader)):
            guard let reader = driver.admitted(reader) else { return false }
            session.handle(.event(.added(reader)))
        case .event(.changed(let reader)):
            guard let reader = driver.admitted(reader) else { return false }
            session.handle(.event(.changed(reader)))
        case .event, .hello, .answer, .health: session.handle(report)
        }
        return true
    }

    /// Both programs are of one version, except while badged is being installed.
    private func greet(_ message: [UInt8]) -> Bool {
        guard case .hello(driver.program, let version)? = DriverReport(bytes: message) else { return false }
        if version != Version.current {
            Log.error("\(driver.program) has version \(version), and badged \(Version.current): restart badged")
        }
        run?.hasGreeted = version == Version.current
        return version == Version.current
    }

    private func handle(_ event: ReaderEvent) {
        if case .health(let checks) = event { report(checks) } else { events?.yield(event) }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Text

/// Asks another program of badged whether it lives, while something depends on the program.
///
/// The question is a message of one byte, which the program sends back. Without a need there are no questions, so a
/// program that nobody needs is not woken up.
@Loop package final class Heartbeat {
    /// The question and its answer: in each protocol between programs of badged, the message of kind 0.
    package nonisolated static let message: [UInt8] = [0]

    /// Time limits in milliseconds; tests pass other ones.
    package struct Times: Sendable {
        /// Between an answer and the next question.
        package var interval: Int64 = 5000
        /// For an answer.
        package var answer: Int64 = 3000
        /// For the first answer: the program may still have to be read from the disk.
        package var start: Int64 = 5000

        package init() {}
    }

    private enum State {
        /// Nothing depends on the program.
        case resting
        case waiting
        /// A question was sent; its answer is due at this time.
        case asked(until: Int64)
        /// The answer is late. It may wait in the socket, if this process was late itself.
        case overdue
        case over
    }

    /// The milliseconds in which this process reads what waits in the socket.
    private static let lastTurn: Int64 = 20

    private let program: String
    private let times: Times
    private let ask: @Loop () -> Void
    private let onSilence: @Loop () -> Void
    private var state = State.resting
    private var hasAnswered = false
    private var callers: [OneShot<Bool>] = []
    private lazy var alarm = Loop.Alarm { [weak self] in self?.due(at: Loop.now) }

    /// - Parameters:
    ///   - program: its name in the log.
    ///   - times: the time limits.
    ///   - ask: sends `message`.
    ///   - onSilence: ends the program, which does not answer. Called once.
    package init(
        _ program: String,
        _ times: Times = Times(),
        ask: @escaping @Loop () -> Void,
        onSilence: @escaping @Loop () -> Void
    ) {
        self.program = program
        self.times = times
        self.ask = ask
        self.onSilence = onSilence
    }

    /// Whether something depends on the program now.
    package var isNeeded = false {
        didSet {
            switch state {
            case .resting where isNeeded: rest()
            case .waiting where !isNeeded: rest()
            case .resting, .waiting, .asked, .overdue, .over: break
            }
        }
    }

    /// Whether this process leaves answers in the socket for now, so that none is late.
    package var isSuspended = false

    /// Handles an answer.
    /// - Returns: false if there was no question.
    package func answered() -> Bool {
        switch state {
        case .resting, .waiting, .over: return false
        case .asked, .overdue: break
        }
        hasAnswered = true
        rest()
        report(true)
        return true
    }

    /// Asks now, unless a question waits for its answer.
    package func check() {
        switch state {
        case .resting, .waiting: break
        case .asked, .overdue, .over: return
        }
        let limit = hasAnswered ? times.answer : times.start
        state = .asked(until: Loop.now + limit)
        alarm.set(after: limit)
        ask()
    }

    /// Asks now, and returns whether the program answers.
    package func answers() async -> Bool {
        if case .over = state { return false }
        let answer = OneShot<Bool>()
        callers.append(answer)
        check()
        return await answer.value(whenCancelled: true)
    }

    /// Ends the questions, because the program has ended.
    package func stop() {
        state = .over
        alarm.cancel()
        report(false)
    }

    private func rest() {
        state = isNeeded ? .waiting : .resting
        if isNeeded { alarm.set(after: times.interval) } else { alarm.cancel() }
    }

    /// Called when a limit is reached.
    func due(at now: Int64) {
        switch state {
        case .resting, .over: break
        case .waiting: check()
        case .asked(let time) where isSuspended || now - time > times.answer:
            // This process stood still itself, and the program with it.
            state = .asked(until: now + times.answer)
            alarm.set(after: times.answer)
        case .asked:
            state = .overdue
            alarm.set(after: Self.lastTurn)
        case .overdue:
            Log.error("\(program) did not answer for some seconds, and is ended")
            state = .over
            onSilence()
            report(false)
        }
    }

    private func report(_ isAlive: Bool) {
        for caller in callers { caller.fill(isAlive) }
        callers = []
    }
}

/// The pauses before a program is started again that has ended unexpectedly or does not answer.
@Loop package struct BackOff {
    private nonisolated static let (first, last): (Int64, Int64) = (1000, 60_000)
    /// The milliseconds after which a program has run well.
    private nonisolated static let stable: Int64 = 60_000
    private var pause = Self.first
    private var start: Int64?

    package nonisolated init() {}

    /// Notes that the program runs, or has begun its work.
    package mutating func started() { start = Loop.now }

    /// The next pause in milliseconds; each is twice as long as the one before, unless the program has run well since.
    package mutating func next() -> Int64 {
        if let start, Loop.now - start >= Self.stable { pause = Self.first }
        start = nil
        defer { pause = min(2 * pause, Self.last) }
        return pause
    }
}

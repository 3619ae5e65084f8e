// SPDX-License-Identifier: GPL-3.0-or-later
import Testing

@testable import Concurrency

@Suite("Whether another program lives", .timeLimit(.minutes(5)))
@Loop struct HeartbeatTests {
    /// A program, which answers the first questions.
    @Loop private final class Program {
        private(set) var questions = 0
        private(set) var ends = 0
        private let waiters = Waiters()
        private let answers: Int
        private var heartbeat: Heartbeat?

        /// No limit of time is reached on a busy machine, unless the program is to be silent.
        init(answers: Int, interval: Int64 = 0) {
            self.answers = answers
            var times = Heartbeat.Times()
            times.interval = interval
            times.answer = answers == .max ? 240_000 : 1
            times.start = times.answer
            heartbeat = Heartbeat("badged-test", times) { [unowned self] in
                questions += 1
                if questions <= answers { #expect(heartbeat?.answered() == true) }
                waiters.check()
            } onSilence: { [unowned self] in
                ends += 1
                waiters.check()
            }
        }

        var isNeeded: Bool {
            get { heartbeat?.isNeeded ?? false }
            set { heartbeat?.isNeeded = newValue }
        }

        func hears() -> Bool { heartbeat?.answered() ?? false }
        func lives() async -> Bool { await heartbeat?.answers() ?? false }
        func stop() { heartbeat?.stop() }
        /// What the next alarm would do.
        func timePasses() { heartbeat?.due(at: Loop.now + 1_000_000) }
        func wait(until condition: @escaping () -> Bool) async { await waiters.wait(until: condition) }
    }

    @Test("a program that something depends on is asked again and again, and no more when nothing does")
    func need() async {
        let program = Program(answers: .max)
        #expect(program.questions == 0)
        program.isNeeded = true
        await program.wait { program.questions >= 3 }
        program.isNeeded = false
        let asked = program.questions
        program.timePasses()
        #expect(program.questions == asked)
        #expect(program.ends == 0)
    }

    @Test("a program that stops answering is ended once, also if it has answered before", arguments: [0, 1, 3])
    func silence(answers: Int) async {
        let program = Program(answers: answers)
        program.isNeeded = true
        await program.wait { program.ends > 0 }
        program.timePasses()
        #expect(program.questions == answers + 1)
        #expect(program.ends == 1)
        #expect(await !program.lives())
    }

    @Test("whoever wants to know asks at once, and hears the truth", arguments: [Int.max, 0])
    func wanted(answers: Int) async {
        let program = Program(answers: answers, interval: 240_000)
        async let first = program.lives()
        async let second = program.lives()
        #expect(await [first, second] == [answers == .max, answers == .max])
        #expect(program.ends == (answers == .max ? 0 : 1))
    }

    @Test("an answer without a question is none, and a program that has ended is not asked")
    func strange() async {
        let program = Program(answers: .max, interval: 240_000)
        #expect(!program.hears())
        #expect(await program.lives())
        #expect(!program.hears())
        program.stop()
        #expect(await !program.lives())
        #expect(program.questions == 1)
    }

    /// What happens when the limit of a question is reached; the clock of the test says how late that is seen.
    private enum Lateness: CaseIterable {
        /// The answer waits in the socket.
        case inSocket
        /// There is no answer.
        case silent
        /// This process stood still for longer than an answer may take, and the answer comes afterwards.
        case stoodStill
        /// The same, and there is no answer.
        case stoodStillAndSilent
        /// This process leaves answers in the socket for now.
        case suspended
    }

    @Test("an answer that is late because this process was late counts; silence does not", arguments: Lateness.allCases)
    private func late(_ lateness: Lateness) {
        var times = Heartbeat.Times()
        (times.interval, times.answer, times.start) = (240_000, 240_000, 240_000)
        var ends = 0
        let heartbeat = Heartbeat("badged-test", times) {
        } onSilence: {
            ends += 1
        }
        let begin = Loop.now
        heartbeat.check()
        // The limit of the question, as it was set, and a moment after it.
        let limit = begin + times.answer + 1000
        func isEnded(at now: Int64) -> Bool {
            heartbeat.due(at: now)
            return ends > 0
        }
        switch lateness {
        case .inSocket:
            #expect(!isEnded(at: limit))
            #expect(heartbeat.answered())
            #expect(!isEnded(at: limit + 1000))
        case .silent:
            #expect(!isEnded(at: limit))
            #expect(isEnded(at: limit))
            #expect(!heartbeat.answered())
            #expect(isEnded(at: limit) && ends == 1)
        case .stoodStill, .stoodStillAndSilent:
            let late = limit + times.answer
            // The program has the whole time once more.
            #expect(!isEnded(at: late))
            guard lateness == .stoodStillAndSilent else {
                #expect(heartbeat.answered())
                break
            }
            #expect(!isEnded(at: late + times.answer))
            #expect(isEnded(at: late + times.answer))
        case .suspended:
            heartbeat.isSuspended = true
            for round in 1...3 { #expect(!isEnded(at: limit + Int64(round) * times.answer)) }
            heartbeat.isSuspended = false
            #expect(heartbeat.answered())
        }
        heartbeat.stop()
    }

    @Test("each pause before the next start is twice as long as the one before, and at most a minute")
    func pauses() {
        var backOff = BackOff()
        #expect((0..<4).map { _ in backOff.next() } == [1000, 2000, 4000, 8000])
        // A program that ends soon after its start has not run well.
        backOff.started()
        #expect((0..<4).map { _ in backOff.next() } == [16_000, 32_000, 60_000, 60_000])
    }
}

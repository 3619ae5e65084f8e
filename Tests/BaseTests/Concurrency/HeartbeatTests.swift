// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Testing

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
        await Loop.sleep(milliseconds: 20)
        #expect(program.questions == asked)
        #expect(program.ends == 0)
    }

    @Test("a program that stops answering is ended once, also if it has answered before", arguments: [0, 1, 3])
    func silence(answers: Int) async {
        let program = Program(answers: answers)
        program.isNeeded = true
        await program.wait { program.ends > 0 }
        await Loop.sleep(milliseconds: 20)
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

    @Test("each pause before the next start is twice as long as the one before, and at most a minute")
    func pauses() {
        var backOff = BackOff()
        #expect((0..<4).map { _ in backOff.next() } == [1000, 2000, 4000, 8000])
        // A program that ends soon after its start has not run well.
        backOff.started()
        #expect((0..<4).map { _ in backOff.next() } == [16_000, 32_000, 60_000, 60_000])
    }
}

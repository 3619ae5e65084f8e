// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Synchronization

/// Switches the echo of the terminal off while a secret is typed, and on again on every way out.
enum Terminal {
    private struct Question {
        var descriptor: Int32
        /// The settings before the question.
        var before: termios
        var prompt: String
        /// Whether the terminal shows what is typed.
        var echoes: Bool
    }

    private static let question = Mutex<Question?>(nil)
    /// Whether the program ends. Then no more questions are asked.
    private static let isEnding = Atomic(false)

    /// Discards what was typed before, switches the echo off unless `echoes`, and writes the question.
    static func ask(_ prompt: String, on descriptor: Int32, echoes: Bool = false) {
        question.withLock { question in
            var before = termios()
            guard !isEnding.load(ordering: .relaxed), tcgetattr(descriptor, &before) == 0 else { return }
            question = Question(descriptor: descriptor, before: before, prompt: prompt, echoes: echoes)
            apply(before, descriptor, echoes)
        }
        // Last, so that the echo is off when the user sees the question.
        Output.write(prompt, to: descriptor)
    }

    /// Ends the question, if there is one, and restores the settings of the terminal.
    /// - Parameter forever: whether later questions of other threads are dropped, because the program ends.
    static func restore(forever: Bool = false) {
        question.withLock { question in
            if forever { isEnding.store(true, ordering: .relaxed) }
            guard var state = question else { return }
            // TCSAFLUSH discards an unfinished PIN. Otherwise the shell would read it.
            tcsetattr(state.descriptor, TCSAFLUSH, &state.before)
            if !state.echoes { Output.write("\n", to: state.descriptor) }
            question = nil
        }
    }

    /// Restores the settings before the program is stopped.
    static func suspend() {
        question.withLock { question in
            guard var state = question else { return }
            tcsetattr(state.descriptor, TCSAFLUSH, &state.before)
        }
    }

    /// Asks the question again after the program has continued.
    static func resume() {
        question.withLock { question in
            guard let state = question else { return }
            apply(state.before, state.descriptor, state.echoes)
            Output.write(state.prompt, to: state.descriptor)
        }
    }

    private static func apply(_ before: termios, _ descriptor: Int32, _ echoes: Bool) {
        var settings = before
        if !echoes { settings.c_lflag &= ~tcflag_t(ECHO | ECHONL) }
        settings.c_lflag |= tcflag_t(ICANON | ISIG)
        tcsetattr(descriptor, TCSAFLUSH, &settings)
    }
}

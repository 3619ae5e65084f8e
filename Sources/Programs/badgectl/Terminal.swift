// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Synchronization

/// The terminal's echo, switched off while a secret is typed and back on at every way out.
enum Terminal {
    private struct Quiet {
        var descriptor: Int32
        var before: termios
        var prompt: String
        /// What is typed is no secret.
        var shows: Bool
    }

    private static let quiet = Mutex<Quiet?>(nil)
    /// The program is at its end: nothing is asked any more.
    private static let isOver = Atomic(false)

    /// Switches the echo off unless `shows`, forgets what was typed before, and writes the question.
    static func ask(_ prompt: String, on descriptor: Int32, shows: Bool = false) {
        quiet.withLock { quiet in
            var before = termios()
            guard !isOver.load(ordering: .relaxed), tcgetattr(descriptor, &before) == 0 else { return }
            quiet = Quiet(descriptor: descriptor, before: before, prompt: prompt, shows: shows)
            silence(before, descriptor, shows)
        }
        // After the echo is off: who waits for the question before typing types unseen.
        Output.write(prompt, to: descriptor)
    }

    /// Ends the question: the echo is as before. Harmless at any time.
    /// - Parameter forever: a question that comes later, from another thread, leaves the echo alone.
    static func restore(forever: Bool = false) {
        quiet.withLock { quiet in
            if forever { isOver.store(true, ordering: .relaxed) }
            guard var state = quiet else { return }
            // TCSAFLUSH: an unfinished PIN does not end up in the shell.
            tcsetattr(state.descriptor, TCSAFLUSH, &state.before)
            if !state.shows { Output.write("\n", to: state.descriptor) }
            quiet = nil
        }
    }

    /// Before the program is stopped.
    static func suspend() {
        quiet.withLock { quiet in
            guard var state = quiet else { return }
            tcsetattr(state.descriptor, TCSAFLUSH, &state.before)
        }
    }

    /// After it goes on.
    static func resume() {
        quiet.withLock { quiet in
            guard let state = quiet else { return }
            silence(state.before, state.descriptor, state.shows)
            Output.write(state.prompt, to: state.descriptor)
        }
    }

    private static func silence(_ before: termios, _ descriptor: Int32, _ shows: Bool) {
        var silent = before
        if !shows { silent.c_lflag &= ~tcflag_t(ECHO | ECHONL) }
        silent.c_lflag |= tcflag_t(ICANON | ISIG)
        tcsetattr(descriptor, TCSAFLUSH, &silent)
    }
}

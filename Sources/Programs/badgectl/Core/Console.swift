// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Synchronization

/// The terminal during a dialogue. From `begin` to `end` it does not show what is typed, except the answer to a
/// question that is no secret. What was typed while no question was open is discarded.
enum Console {
    private struct Question {
        var prompt: String
        /// Whether the terminal shows what is typed.
        var echoes: Bool
        /// Whether the answer is still wanted.
        var isOpen: @Sendable () -> Bool
        /// Whether a text was written below the prompt, so that the cursor is at the start of a line.
        var isInterrupted = false
    }

    private struct Dialogue {
        let descriptor: Int32
        /// The settings before the dialogue.
        var before: termios
        let input: LineSource
        var question: Question?
        /// Whether the last line is a step, which the next text replaces.
        var showsStep = false
    }

    private static let dialogue = Mutex<Dialogue?>(nil)
    /// Whether the program ends. Then no dialogue begins.
    private static let isEnding = Atomic(false)

    /// Begins a dialogue, unless one runs: switches the echo off and discards what was typed before.
    static func begin(on descriptor: Int32, _ input: LineSource) {
        dialogue.withLock { dialogue in
            var before = termios()
            guard dialogue == nil, !isEnding.load(ordering: .relaxed), tcgetattr(descriptor, &before) == 0 else {
                return
            }
            dialogue = Dialogue(descriptor: descriptor, before: before, input: input)
            dialogue.map { apply($0) }
        }
    }

    /// Discards what was typed before, and writes the question. `isOpen` says whether its answer is still wanted.
    static func ask(_ prompt: String, echoes: Bool, isOpen: @escaping @Sendable () -> Bool) {
        dialogue.withLock { dialogue in
            dialogue?.question = Question(prompt: prompt, echoes: echoes, isOpen: isOpen)
            guard let state = dialogue else { return }
            apply(state)
            removeStep(&dialogue)
            // Last, so that the echo is off when the user sees the question.
            Output.write(prompt, to: state.descriptor)
        }
    }

    /// Notes that the answer to the open question is not wanted any more, although the question is not ended yet.
    static func dropQuestion() { dialogue.withLock { $0?.question?.isOpen = { false } } }

    /// Ends the question. `hasLine`: whether the user has typed a line.
    static func answered(hasLine: Bool) {
        dialogue.withLock { dialogue in
            guard let state = dialogue, let question = state.question else { return }
            dialogue?.question = nil
            // An unfinished line stays: `finish` must see it. The next question discards it.
            dialogue.map { apply($0, discardsInput: false) }
            let isLineEnded = question.isInterrupted || (question.echoes && hasLine)
            if !isLineEnded { Output.write("\n", to: state.descriptor) }
        }
    }

    /// Writes a text to the terminal; while a question is open, in a line of its own.
    static func say(_ text: String, on descriptor: Int32) {
        let text = text.printableLines
        dialogue.withLock { dialogue in
            removeStep(&dialogue)
            guard let question = dialogue?.question, isatty(descriptor) == 1 else {
                Output.write(text + "\n", to: descriptor)
                return
            }
            let isOpen = question.isOpen()
            let start = question.isInterrupted ? "" : "\n"
            Output.write(start + text + "\n" + (isOpen ? question.prompt : ""), to: descriptor)
            dialogue?.question?.isInterrupted = !isOpen
        }
    }

    /// Writes a step of a workflow in place of the step before.
    /// - Returns: false if there is no terminal for it. Then it is to be written as a line.
    static func show(step text: String) -> Bool {
        dialogue.withLock { dialogue in
            guard let state = dialogue, state.question == nil, !Layout.isPlain else { return false }
            // A line that the terminal breaks could not be replaced.
            let text = String(text.printable.prefix(Layout.width(of: state.descriptor) - 1))
            Output.write("\r\u{1B}[K" + text, to: state.descriptor)
            dialogue?.showsStep = true
            return true
        }
    }

    /// Removes the step from the terminal, before something else is written there.
    static func removeStep() { dialogue.withLock { removeStep(&$0) } }

    private static func removeStep(_ dialogue: inout Dialogue?) {
        guard let state = dialogue, state.showsStep else { return }
        Output.write("\r\u{1B}[K", to: state.descriptor)
        dialogue?.showsStep = false
    }

    /// Clears the terminal, and what it has kept of earlier lines.
    static func clear(_ descriptor: Int32) {
        dialogue.withLock { _ in _ = Output.write("\u{1B}[H\u{1B}[2J\u{1B}[3J", to: descriptor) }
    }

    /// Ends the dialogue. If the user has typed a part of a line, waits for the end of the line and drops it. Otherwise
    /// the shell would get the rest of a PIN as a command.
    static func finish() async {
        guard let input = dialogue.withLock({ $0?.input }) else { return }
        await input.dropTyped()
        end()
    }

    /// Makes every typed character readable at once, so that an unfinished line can be seen.
    static func showUnfinishedLine() {
        dialogue.withLock { dialogue in
            guard let state = dialogue else { return }
            var settings = state.before
            settings.c_lflag &= ~tcflag_t(ECHO | ECHONL | ICANON)
            settings.c_lflag |= tcflag_t(ISIG)
            // Not TCSAFLUSH, which would discard the unfinished line.
            tcsetattr(state.descriptor, TCSANOW, &settings)
        }
    }

    /// Ends the dialogue, if there is one: restores the settings of the terminal and discards what was typed.
    /// - Parameter forever: whether no dialogue may begin later, because the program ends.
    static func end(forever: Bool = false) {
        dialogue.withLock { dialogue in
            if forever { isEnding.store(true, ordering: .relaxed) }
            removeStep(&dialogue)
            guard var state = dialogue else { return }
            tcsetattr(state.descriptor, TCSAFLUSH, &state.before)
            if let question = state.question, !question.isInterrupted { Output.write("\n", to: state.descriptor) }
            dialogue = nil
        }
    }

    /// Restores the settings before the program is stopped.
    static func suspend() {
        dialogue.withLock { dialogue in
            removeStep(&dialogue)
            guard var state = dialogue else { return }
            tcsetattr(state.descriptor, TCSAFLUSH, &state.before)
        }
    }

    /// Continues the dialogue after the program was stopped, and asks the open question again.
    static func resume() {
        dialogue.withLock { dialogue in
            guard let state = dialogue else { return }
            apply(state)
            if let question = state.question, question.isOpen() {
                Output.write(question.prompt, to: state.descriptor)
                dialogue?.question?.isInterrupted = false
            }
        }
    }

    /// Sets the echo as the dialogue needs it now.
    private static func apply(_ state: Dialogue, discardsInput: Bool = true) {
        var settings = state.before
        if state.question?.echoes != true { settings.c_lflag &= ~tcflag_t(ECHO | ECHONL) }
        settings.c_lflag |= tcflag_t(ICANON | ISIG)
        tcsetattr(state.descriptor, discardsInput ? TCSAFLUSH : TCSADRAIN, &settings)
    }
}

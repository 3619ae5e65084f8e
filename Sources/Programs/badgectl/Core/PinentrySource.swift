// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Synchronization
import Text

/// The user at a desktop: pinentry asks each question in a window, which shows what was said since the last question.
final class PinentrySource: AnswerSource {
    private let program: String
    private let said = Mutex<[String]>([])

    init(_ program: String) { self.program = program }

    func note(_ text: String) { said.withLock { $0.append(text) } }

    private func removeNotes() -> [String] {
        said.withLock { said in
            defer { said = [] }
            return said
        }
    }

    /// The notes, and `end` below them. pinentry cuts a long text, and the last note says what the question needs, such
    /// as the tries that are left: what was said before it is left out if there is no room for all.
    static func description(_ notes: [String], _ end: String = "") -> String {
        var notes = notes
        while notes.count > 1, !Pinentry.fits(notes.joined(separator: "\n") + end) { notes.removeFirst() }
        return notes.joined(separator: "\n") + end
    }

    func ask(_ form: TypedSecretForm) async -> TypedAnswer {
        let notes = removeNotes()
        let need = notes.isEmpty ? [tr("The card needs the \(form.name).")] : notes
        let window = SecretWindow(
            description: Self.description(need, form.service.map { "\n\n\($0)" } ?? ""),
            prompt: form.name.asSentence + ":",
            advice: form.advice,
            again: tr("Repeat the \(form.name):").asSentence,
            different: tr("You have typed two different values.")
        )
        return await window.ask(program, form)
    }

    func askToContinue() async -> TypedAnswer {
        let settings = [
            Pinentry.Setting("SETDESC", Self.description(removeNotes())), Pinentry.Setting("SETOK", tr("Continue")),
        ]
        switch await answer(settings, "CONFIRM") {
        case .yes: return .confirmed
        case .other, .cancelled: return .ended
        case .tooSmall, nil: return Task.isCancelled ? .cancelled : .noPinentry
        }
    }

    /// pinentry has no line for a text. What can be asked with buttons is asked by `choose`.
    func ask(_ prompt: String) async -> TypedAnswer { .noTerminal }

    func reveal(_ text: String) async -> TypedAnswer {
        let asksInTerminal = await Pinentry.asksInTerminal(program)
        // pinentry leaves its text there, also when the question was cancelled.
        defer { if asksInTerminal { TerminalSource()?.clear() } }
        switch await choose(Choice(text: text, yes: tr("I have written it down"))) {
        case .yes: return .confirmed
        case .cancelled: return .cancelled
        case .other, .no, .tooLong: return .ended
        case .failed: return .noPinentry
        case nil: return .noTerminal
        }
    }

    func choose(_ choice: Choice) async -> Choice.Answer? {
        _ = removeNotes()
        let hasThirdButton = choice.other == nil ? false : await Pinentry.hasThirdButton(program)
        for room in Pinentry.Room.all {
            guard let pages = Self.pages(choice, in: room) else { return .tooLong }
            if let answer = await show(pages, choice, hasThirdButton) { return answer }
        }
        return .failed
    }

    /// Shows one page after the other; nil if a window has no room for its page.
    private func show(_ pages: [String], _ choice: Choice, _ hasThirdButton: Bool) async -> Choice.Answer? {
        for (number, page) in pages.enumerated() {
            let isLast = number == pages.count - 1
            var settings = [
                Pinentry.Setting("SETDESC", page), Pinentry.Setting("SETOK", isLast ? choice.yes : tr("Next page")),
                Pinentry.Setting("SETCANCEL", tr("Cancel")),
            ]
            if isLast, hasThirdButton, let other = choice.other {
                settings.append(Pinentry.Setting("SETNOTOK", other.button))
            }
            switch await answer(settings, "CONFIRM") {
            case .yes where isLast && !hasThirdButton && choice.other != nil: return await chooseAgain(choice)
            case .yes: if isLast { return .yes }
            case .other: return choice.other == nil || !isLast ? .no : .other
            case .cancelled: return .no
            case .tooSmall: return nil
            case nil: return Task.isCancelled ? .cancelled : .failed
            }
        }
        return .no
    }

    /// Asks in a second window what the third button of the first one would say.
    private func chooseAgain(_ choice: Choice) async -> Choice.Answer? {
        guard let other = choice.other else { return .yes }
        let settings = [
            Pinentry.Setting("SETDESC", other.question), Pinentry.Setting("SETOK", other.no),
            Pinentry.Setting("SETCANCEL", other.button),
        ]
        switch await answer(settings, "CONFIRM") {
        case .yes: return .yes
        case .other, .cancelled: return .other
        case .tooSmall, nil: return Task.isCancelled ? .cancelled : .failed
        }
    }

    /// The pages of a question: at most so many that a person reads them. Words that are on offer elsewhere are left out
    /// if they are too many, and each page of them says whose they are; nil if what must be read is too long.
    static func pages(_ choice: Choice, in room: Pinentry.Room = .init()) -> [String]? {
        let necessary = Pinentry.pages(choice.text, in: room)
        guard necessary.count <= maximumPages else { return nil }
        guard let appendix = choice.appendix else { return necessary }
        let together = Pinentry.pages("\(choice.text)\n\n\(appendix.title):\n\(appendix.text)", in: room)
        if together.count == 1 { return together }
        let title = tr("\(appendix.title), in the words of the service:")
        let all = necessary + Pinentry.pages(appendix.text, title: title, in: room)
        return all.count <= maximumPages ? all : Pinentry.pages(choice.text + "\n\n" + appendix.elsewhere, in: room)
    }

    private static let maximumPages = 10

    private func answer(_ settings: [Pinentry.Setting], _ command: String) async -> Pinentry.Answer? {
        await Pinentry.ask(program, settings, command)
    }
}

/// The words of a window that asks for a secret.
struct SecretWindow: Sendable {
    var description: String
    var prompt: String
    /// What is said after a value of another form.
    var advice: String
    /// The prompt for the second time, and what is said when the two values differ.
    var again: String
    var different: String
    /// The title and the buttons, if they are not those of badgectl and pinentry.
    var others: [Pinentry.Setting] = []

    /// Asks until the value has the right form.
    func ask(_ program: String, _ form: TypedSecretForm) async -> TypedAnswer {
        var description = description
        var settings = others + [Pinentry.Setting("SETPROMPT", prompt)]
        if form.isTypedTwice {
            settings.append(Pinentry.Setting("SETREPEAT", again))
            settings.append(Pinentry.Setting("SETREPEATERROR", different))
        }
        var error: [Pinentry.Setting] = []
        while true {
            let text = [Pinentry.Setting("SETDESC", description)]
            switch await Pinentry.ask(program, text + settings + error, "GETPIN") {
            case .yes(let box):
                if let secret = box?.take(), form.accepts(secret) { return .secret(SecretBox(secret)) }
                error = [Pinentry.Setting("SETERROR", advice)]
            case .other, .cancelled: return .ended
            case .tooSmall:
                // The consent has shown the service, which stands last.
                guard let service = description.firstRange(of: "\n\n") else { return .noPinentry }
                description.removeSubrange(service.lowerBound...)
            case nil: return Task.isCancelled ? .cancelled : .noPinentry
            }
        }
    }
}

/// A question that buttons can answer.
struct Choice {
    /// Words of a service.
    struct Appendix {
        var title: String
        var text: String
        /// What is said instead if the text is too long.
        var elsewhere: String
    }

    /// What must be read.
    var text: String
    /// What is shown as well if it is not too long; nil: nothing.
    var appendix: Appendix?
    /// The button that agrees.
    var yes: String
    /// A third way to answer.
    struct Other {
        var button: String
        /// What a window of its own asks, where the first one has no room for the button, and the button for `yes` there.
        var question: String
        var no: String
    }

    var other: Other?

    enum Answer {
        case yes, other, no
        /// The question became void.
        case cancelled
        /// No window can be opened here.
        case failed
        /// The text is too long for windows.
        case tooLong
    }
}

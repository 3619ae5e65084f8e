// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// One of the actions of a command, such as `sign` of `badgectl wallet`.
struct CommandAction: Sendable {
    let name: String
    /// The arguments, the optional ones last.
    let arguments: [ValueSpec]
    let summary: String
    /// The options that it takes beside those of every action.
    let options: [OptionName]
    let run: @Sendable (Invocation) async throws -> Void

    init(
        _ name: String,
        _ arguments: [ValueSpec],
        _ summary: Phrase,
        options: [OptionName] = [],
        run: @escaping @Sendable (Invocation) async throws -> Void
    ) {
        self.name = name
        self.arguments = arguments
        self.summary = tr(summary)
        self.options = options
        self.run = run
    }

    init(
        _ name: String,
        _ summary: Phrase,
        options: [OptionName] = [],
        run: @escaping @Sendable (Invocation) async throws -> Void
    ) {
        self.init(name, [], summary, options: options, run: run)
    }

    /// The name and the arguments in the help; optional ones are in brackets.
    var usage: String { ([name] + arguments.map(\.usage)).joined(separator: " ") }
    /// How many arguments there may be.
    var counts: ClosedRange<Int> { arguments.count { !$0.isOptional }...arguments.count }
}

extension ShellCommand {
    /// A command whose first argument is one of `actions`.
    ///
    /// - Parameters:
    ///   - name: the name of the command.
    ///   - summary: what the command does.
    ///   - actions: in the order of the help.
    ///   - usual: the action of a command line without one; nil: there must be one.
    ///   - others: the arguments of the actions, as the help names them.
    ///   - common: the options of every action.
    ///   - options: the options of single actions.
    ///   - details: paragraphs of the help.
    ///   - examples: of the help.
    ///   - card: the card that the user puts on the reader.
    ///   - virtualCard: the card that is put into a virtual reader at the first insertion.
    init(
        name: String,
        summary: String,
        actions: [CommandAction],
        usual: String? = nil,
        others: ValueSpec,
        common: [OptionSpec] = [],
        options: [OptionSpec] = [],
        details: [Phrase],
        examples: [Example] = [],
        card: String = tr("ID card"),
        virtualCard: @escaping @Sendable (Invocation) -> JSON = { _ in .keptCard("eid") }
    ) {
        let known = Set((common + CommandTable.global).map(\.key))
        self.init(
            name: name,
            summary: summary,
            operand: ValueSpec("ACTION", .words(actions.map(\.name)), isOptional: usual != nil),
            others: others,
            options: common + options,
            actions: actions,
            details: details,
            examples: examples,
            card: card,
            progress: [
                60: tr("the card is open"), 80: tr("badged sends the transaction to the node"),
                90: tr("badged reports the result to the callback"),
            ],
            asksForConsent: { invocation in
                actions.contains { $0.name == invocation.operand && $0.options.contains(.yes) }
            },
            virtualCard: virtualCard
        ) { invocation in
            let wanted = invocation.operand.isEmpty ? usual : invocation.operand
            guard let action = actions.first(where: { $0.name == wanted }) else {
                throw invocation.usage(tr("unknown action \(invocation.operand)"))
            }
            try Self.check(action, invocation, known)
            try await action.run(invocation)
        }
    }

    /// The options that an action takes.
    func options(of action: CommandAction) -> [OptionSpec] {
        let others = Set(actions.flatMap(\.options)).subtracting(action.options)
        return options.filter { !others.contains($0.key) }
    }

    /// Checks that the action takes these arguments and options.
    private static func check(_ action: CommandAction, _ invocation: Invocation, _ known: Set<OptionName>) throws {
        let command = "\(invocation.command) \(action.name)"
        guard action.counts.contains(invocation.others.count) else {
            if invocation.others.count > action.counts.upperBound {
                throw invocation.usage(tr("unexpected argument \(invocation.others[action.counts.upperBound])"))
            }
            throw invocation.usage(tr("\(command) needs \(action.arguments.map(\.usage).joined(separator: " "))"))
        }
        let others = invocation.given.filter { !known.contains($0) && !action.options.contains($0) }
        if let option = others.map(\.description).min() {
            throw invocation.usage(tr("\(command) has no option \(option)"))
        }
    }
}

extension Invocation {
    var command: String { if case .run(let spec) = request { spec.name } else { "" } }

    /// The first argument of an action; empty if there is none.
    var argument: String { others.first ?? "" }

    func usage(_ text: String) -> CommandFailure {
        CommandFailure(usage: text, hint: tr("badgectl \(command) --help shows what is possible"))
    }
}

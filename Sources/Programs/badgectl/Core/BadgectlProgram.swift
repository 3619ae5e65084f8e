// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Text

@main struct Program {
    static func main() {
        // A core dump must not hold a PIN that was typed here.
        ProcessHardening.apply()
        let signals = EndSignals.block()
        let invocation: Invocation
        do {
            invocation = try Invocation.parse(try arguments())
        } catch {
            Output.quit(status(error))
        }
        PlainWords.use(socket: invocation.socket)
        switch invocation.request {
        case .help(let command, let action):
            Output.line(Help.text(for: command, action))
            Output.quit(.done)
        case .topic(let topic):
            Output.line(topic.text)
            Output.quit(.done)
        case .version:
            Output.line("badgectl \(Version.current)")
            Output.quit(.done)
        case .run(let command):
            // Detached: the main actor's thread waits for signals.
            Task.detached {
                var status = ExitStatus.done
                do {
                    try await command.run(invocation)
                } catch {
                    status = Self.status(error)
                }
                EndSignals.handle { [status] _ in Output.quit(status) }
                if !status.isInterruption { await Console.finish() }
                Output.quit(status)
            }
            EndSignals.serve(signals)
        }
    }

    /// Writes the failure, and returns the status with which the program ends.
    private static func status(_ error: any Error) -> ExitStatus {
        if let status = error as? ExitStatus { return status }
        let failure = CommandFailure(error)
        Output.error(failure)
        return failure.status
    }

    private static func arguments() throws -> [String] {
        try ProgramArguments.texts.enumerated().map { index, text in
            guard let text else {
                throw CommandFailure(
                    usage: tr("argument \(index + 1) is not UTF-8"),
                    hint: tr("use a UTF-8 locale and encode it again")
                )
            }
            return text
        }
    }
}

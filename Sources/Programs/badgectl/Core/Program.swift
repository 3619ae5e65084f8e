// SPDX-License-Identifier: GPL-3.0-or-later
import Host

@main struct Program {
    static func main() {
        // A core dump must not hold a PIN that was typed here.
        ProcessHardening.apply()
        let signals = Signals.block()
        let invocation: Invocation
        do throws(Failure) {
            invocation = try Invocation.parse(Array(CommandLine.arguments.dropFirst()))
        } catch {
            Output.error(error)
            Output.quit(error.status)
        }
        switch invocation.request {
        case .help(let command):
            Output.line(Help.text(for: command))
            Output.quit(.done)
        case .version:
            Output.line("badgectl \(Version.current)")
            Output.quit(.done)
        case .run(let command):
            // Detached: the main actor's thread waits for signals.
            Task.detached {
                let status: ExitStatus
                do throws(Failure) {
                    status = try await command.run(invocation)
                } catch {
                    Output.error(error)
                    status = error.status
                }
                Signals.handle { _ in Output.quit(status) }
                if !status.isInterruption { await Terminal.finish() }
                Output.quit(status)
            }
            Signals.serve(signals)
        }
    }
}

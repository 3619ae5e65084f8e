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
                do throws(Failure) {
                    Output.quit(try await command.run(invocation))
                } catch {
                    Output.error(error)
                    Output.quit(error.status)
                }
            }
            Signals.serve(signals)
        }
    }
}

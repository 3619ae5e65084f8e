// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// `badgectl status`: INFO, READER_LIST and HEALTH on one page.
enum StatusCommand {
    @Sendable static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let connection = try await invocation.connect(keepsEvents: false)
        let answers = try await invocation.ask(["GET_INFO", "GET_READER_LIST", "GET_HEALTH"], connection)
        if invocation.wantsJSON { return .done }
        var rows: [(String, String)] = []
        for answer in answers {
            switch answer.message {
            case .info(let info):
                let version = info.protocolVersion.map { " (protocol \($0))" } ?? ""
                Output.line("\(info.name) \(info.version)\(version)")
                rows.append(("drivers", info.drivers.isEmpty ? "none" : info.drivers.joined(separator: ", ")))
            case .readerList(let readers):
                for reader in readers { rows.append(("reader", "\(reader.name): \(reader.words)")) }
                if readers.isEmpty { rows.append(("reader", "none")) }
            case .health(let checks):
                let bad = checks.count { !$0.isOK }
                let words = bad == 1 ? "1 check failed" : "\(bad) checks failed"
                rows.append(("health", bad == 0 ? "good" : "\(words), see badgectl health"))
            default: continue
            }
        }
        Output.line(Help.columns(rows))
        return .done
    }
}

extension Invocation {
    /// The answers to commands without parameters, written as they came when `--json` is given; a refusal is thrown.
    func ask(_ commands: [String], _ connection: DaemonConnection) async throws(Failure) -> [Event] {
        var answers: [Event] = []
        do throws(ClientError) {
            for command in commands {
                let answer = try await connection.request(command)
                if wantsJSON { Output.line(answer.text) }
                if let refusal = ClientError(answer.message) { throw refusal }
                answers.append(answer)
            }
        } catch {
            throw Failure(error)
        }
        return answers
    }
}

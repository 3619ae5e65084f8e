// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Scanners

/// The power of the kernel's adapters. Whoever reads the socket hands in the answers.
@Loop final class ManagementPower {
    private struct Question: Hashable {
        let command: UInt16
        let adapter: UInt16
    }

    private struct Answer {
        let status: UInt8
        let result: [UInt8]
    }

    private let socket: ManagementSocket
    /// Milliseconds until an answer is taken for lost, as the kernel drops what finds no room in a full socket.
    private let patience: Int64
    private var waiting: [Question: (alarm: Loop.Alarm, continuation: CheckedContinuation<Answer?, Never>)] = [:]
    private var isEnded = false

    init(_ socket: ManagementSocket, patience: Int64) { (self.socket, self.patience) = (socket, patience) }

    /// That of one adapter.
    func power(of adapter: UInt16) -> any PowerSwitch { OneAdapter(self, adapter) }

    /// The kernel has answered a command, of whoever.
    func answered(_ command: UInt16, _ adapter: UInt16, _ status: UInt8, _ result: [UInt8]) {
        end(Question(command: command, adapter: adapter), Answer(status: status, result: result))
    }

    /// No answer will come any more.
    func end() {
        isEnded = true
        for question in waiting.keys { end(question, nil) }
    }

    private func end(_ question: Question, _ answer: Answer?) {
        waiting.removeValue(forKey: question)?.continuation.resume(returning: answer)
    }

    /// nil: there was no answer.
    private func ask(_ command: ManagementCommand) async -> Answer? {
        guard !isEnded, socket.send(command) else { return nil }
        let question = Question(command: command.code, adapter: command.adapter)
        let alarm = Loop.Alarm { [weak self] in self?.end(question, nil) }
        alarm.set(after: patience)
        return await withCheckedContinuation { waiting[question] = (alarm, $0) }
    }

    private final class OneAdapter: PowerSwitch {
        private let kernel: ManagementPower
        private let adapter: UInt16

        init(_ kernel: ManagementPower, _ adapter: UInt16) { (self.kernel, self.adapter) = (kernel, adapter) }

        func isInUse() async -> Bool {
            guard let answer = await kernel.ask(.getConnections(adapter)) else { return true }
            return answer.status != ManagementCommand.Status.success || answer.result.prefix(2) != [0, 0]
        }

        func setPower(_ isOn: Bool) async -> PowerOutcome {
            guard let answer = await kernel.ask(.setPowered(adapter, isOn)) else {
                return kernel.isEnded ? .removed : .failed
            }
            switch answer.status {
            // It may be the late one to the command before.
            case ManagementCommand.Status.success:
                return ManagementAdapterInfo.settings(answer.result).map { ($0 & 1 == 1) == isOn } == true
                    ? .done : .failed
            case ManagementCommand.Status.invalidIndex: return .removed
            default: return .failed
            }
        }
    }
}

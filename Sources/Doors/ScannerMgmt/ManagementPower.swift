// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Scanners

/// Switches the power of the kernel's adapters, and sends other commands that wait for their answer. The reader of the socket must pass every answer to `answered`.
@Loop final class ManagementPower {
    private struct Request: Hashable {
        let command: UInt16
        let adapter: UInt16
    }

    struct Answer {
        let status: UInt8
        let result: [UInt8]
    }

    private let socket: ManagementSocket
    /// Milliseconds after which an answer counts as lost; the kernel drops packets when the socket is full.
    private let timeout: Int64
    private var waiting: [Request: (alarm: Loop.Alarm, continuation: CheckedContinuation<Answer?, Never>)] = [:]
    private var isEnded = false

    init(_ socket: ManagementSocket, timeout: Int64) { (self.socket, self.timeout) = (socket, timeout) }

    func power(of adapter: UInt16) -> any PowerSwitch { AdapterPower(self, adapter) }

    /// The kernel has answered a command; also called for commands of other objects.
    func answered(_ command: UInt16, _ adapter: UInt16, _ status: UInt8, _ result: [UInt8]) {
        resume(Request(command: command, adapter: adapter), Answer(status: status, result: result))
    }

    /// The socket was closed, so no more answers arrive.
    func end() {
        isEnded = true
        for request in waiting.keys { resume(request, nil) }
    }

    /// Lets nobody wait for answers to this command any more.
    func abandon(_ command: UInt16) {
        for request in waiting.keys where request.command == command { resume(request, nil) }
    }

    private func resume(_ request: Request, _ answer: Answer?) {
        waiting.removeValue(forKey: request)?.continuation.resume(returning: answer)
    }

    /// Sends a command and waits for the answer; nil: there is none.
    func ask(_ command: ManagementCommand) async -> Answer? {
        guard !isEnded, socket.send(command) else { return nil }
        let request = Request(command: command.code, adapter: command.adapter)
        let alarm = Loop.Alarm { [weak self] in self?.resume(request, nil) }
        alarm.set(after: timeout)
        return await withCheckedContinuation { waiting[request] = (alarm, $0) }
    }

    private final class AdapterPower: PowerSwitch {
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
            case ManagementCommand.Status.success:
                // The answer may be a late one to the previous command, which had the opposite value.
                return ManagementSettings(answer.result)?.isPowered == isOn ? .done : .failed
            case ManagementCommand.Status.invalidIndex: return .removed
            default: return .failed
            }
        }
    }
}

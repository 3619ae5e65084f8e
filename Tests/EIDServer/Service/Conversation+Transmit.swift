// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Server
import Text

/// Transmit: sends commands for the card and receives its answers. TR-03112-6 3.2.5.
extension Conversation {
    func sendTransmit(_ message: PAOSMessage) throws(ConversationError) -> HTTPResponse {
        guard let reading else { throw .internalError("nothing to read") }
        let isFirst = state != .transmit
        state = .transmit
        let secured = try reading.next(options.batch)
        var commands = secured.map { (digits: Hex.encode($0.bytes), acceptable: options.acceptableStatus) }
        if isFirst { spoil(&commands, secured) }
        return delayed(send(PAOSAnswer.transmit(slot: slot, commands), to: message), isFirst ? "transmit" : "")
    }

    private func spoil(_ commands: inout [(digits: String, acceptable: [String])], _ secured: [CommandAPDU]) {
        guard let fault = options.fault, var first = secured.first, !commands.isEmpty else { return }
        switch fault {
        case .transmitMAC:
            if let last = first.data.indices.last { first.data[last] ^= 1 }
            commands[0].digits = Hex.encode(first.bytes)
        case .transmitPlain: commands[0].digits = reading?.pending.first.map { Hex.encode($0.command.bytes) } ?? ""
        case .transmitGarbage: commands[0].digits = "zz" + commands[0].digits
        case .transmitNone: commands = []
        case .transmitMany: commands = Array(repeating: commands[0], count: 20_000)
        case .transmitStatus: commands[0].acceptable = ["6a82"]
        default: return
        }
        report.event("fault", [.init("name", .string(fault.rawValue))])
    }

    func receiveTransmit(_ message: PAOSMessage) throws(ConversationError) -> HTTPResponse {
        try requireOK(message)
        guard let reading else { throw .internalError("nothing was read") }
        var answers: [[UInt8]] = []
        for element in message.body.children(.iso, "OutputAPDU") {
            guard let bytes = Hex.decode(element.trimmed) else {
                throw .incorrectParameter("OutputAPDU is not hexBinary")
            }
            answers.append(bytes)
        }
        try reading.receive(answers)
        report.data = reading.data
        if options.fault == .transmitEndless { reading.planSelection() }
        return reading.isDone ? try finishReading(message) : try sendTransmit(message)
    }

    private func finishReading(_ message: PAOSMessage) throws(ConversationError) -> HTTPResponse {
        if let response = try replacement("final", for: message) {
            report.finish("the end went wrong on purpose")
            return response
        }
        if options.fault == .finalError { throw .internalError("an error was asked for") }
        return finish(message)
    }

    /// Ends the run without an error.
    func finish(_ message: PAOSMessage) -> HTTPResponse {
        state = .done
        let isComplete = reading?.isDone == true
        report.finish(isComplete ? "ok" : "ended early on purpose")
        return send(PAOSAnswer.startPAOSResponse(), to: message)
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
package import ISO7816
package import MobileDocument
package import Text

/// Why a dialogue with a phone on an NFC reader has ended early.
package enum NFCProblem: Error, Equatable {
    /// No answer came.
    case card(CardError)
    /// The phone has no application for NDEF messages now: it is locked, or has no wallet.
    case notWilling
    /// What lies there shows a message without handover.
    case noHandover([UInt8])
    /// The phone does not go on with its handover, for this reason.
    case stopped(Phrase)
    case malformed(Phrase)
    /// A message of the phone cannot be used.
    case mdoc(MdocProblem)
}

/// The application of a phone for NDEF messages. NFC Forum Type 4 Tag 2.0, 5.
///
/// Each command is sent once, because a second SELECT begins another handover on some phones.
package struct NDEFApplication {
    private static let identifier: [UInt8] = [0xD2, 0x76, 0x00, 0x00, 0x85, 0x01, 0x01]
    private static let capabilityFile: [UInt8] = [0xE1, 0x03]
    private static let capabilityCount = 15
    private static let maximumBytes = 16_384
    /// The time for one message, and the shortest time between two looks at its length, in milliseconds.
    private static let timeout = Duration.seconds(3)
    private static let pauses: ClosedRange<Int64> = 1...1000

    private let channel: CompletingChannel
    /// The longest answer and the longest data of a command, in bytes.
    private let (readCount, writeCount): (Int, Int)

    /// Selects the application, and the file that its capability container names.
    package init(on channel: any CardChannel) async throws(NFCProblem) {
        self.channel = CompletingChannel(channel)
        let select = CommandAPDU(0x00, 0xA4, 0x04, 0x00, data: Self.identifier, le: 256)
        guard try await Self.answer(select, self.channel).status == .ok else { throw .notWilling }
        try await Self.select(Self.capabilityFile, self.channel)
        let capability = try await Self.read(0, Self.capabilityCount, self.channel)
        // Length, version, longest answer, longest command, and the object 04 with the file, its size and the access.
        guard capability.count == Self.capabilityCount, capability[7] == 0x04 else {
            throw .malformed("the capability container of the phone breaks its form")
        }
        // The least values that NFC Forum allows, which some wallets go below.
        readCount = min(255, max(15, Int(capability[3]) << 8 | Int(capability[4])))
        writeCount = min(255, max(13, Int(capability[5]) << 8 | Int(capability[6])))
        try await Self.select(Array(capability[9..<11]), self.channel)
    }

    private static func answer(
        _ command: CommandAPDU,
        _ channel: CompletingChannel
    ) async throws(NFCProblem) -> ResponseAPDU {
        guard !Task.isCancelled else { throw .card(.cancelled) }
        do throws(CardError) {
            return try await channel.transmit(command)
        } catch {
            throw .card(error)
        }
    }

    private static func select(_ file: [UInt8], _ channel: CompletingChannel) async throws(NFCProblem) {
        let answer = try await answer(CommandAPDU(0x00, 0xA4, 0x00, 0x0C, data: file), channel)
        guard answer.status == .ok else { throw .stopped("it refuses its own file with \(answer.status)") }
    }

    private static func read(
        _ offset: Int,
        _ count: Int,
        _ channel: CompletingChannel
    ) async throws(NFCProblem) -> [UInt8] {
        let (high, low) = (UInt8(truncatingIfNeeded: offset >> 8), UInt8(truncatingIfNeeded: offset))
        let answer = try await answer(CommandAPDU(0x00, 0xB0, high, low, le: count), channel)
        guard answer.status == .ok, answer.data.count <= count else {
            throw .malformed("the phone does not return its message: \(answer.status)")
        }
        return answer.data
    }

    /// Reads the message. A length of 0 is a wish for more time; `pause` is the time between two looks at the length, in
    /// milliseconds.
    package func message(pause: Int64 = 0) async throws(NFCProblem) -> [UInt8] {
        let start = ContinuousClock.now
        var count = 0
        while true {
            let head = try await Self.read(0, 2, channel)
            guard head.count == 2 else { throw .malformed("the message of the phone has no length") }
            count = Int(head[0]) << 8 | Int(head[1])
            if count > 0 { break }
            guard ContinuousClock.now - start < Self.timeout else { throw .stopped("its message does not come") }
            await Loop.sleep(milliseconds: min(max(pause, Self.pauses.lowerBound), Self.pauses.upperBound))
        }
        guard count <= Self.maximumBytes else { throw .malformed("the message of the phone has \(count) bytes") }
        var message: [UInt8] = []
        while message.count < count {
            let part = try await Self.read(2 + message.count, min(count - message.count, readCount), channel)
            guard !part.isEmpty else { throw .malformed("the message of the phone is shorter than its length") }
            message += part
        }
        return message
    }

    /// Writes a message: in one command, or else in parts with the length 0 before and the length after them.
    package func write(_ message: [UInt8]) async throws(NFCProblem) {
        let length = [UInt8(truncatingIfNeeded: message.count >> 8), UInt8(truncatingIfNeeded: message.count)]
        guard message.count + 2 > writeCount else { return try await update(0, length + message) }
        try await update(0, [0, 0])
        for start in stride(from: 0, to: message.count, by: writeCount) {
            try await update(2 + start, Array(message[start..<min(start + writeCount, message.count)]))
        }
        try await update(0, length)
    }

    private func update(_ offset: Int, _ data: [UInt8]) async throws(NFCProblem) {
        let (high, low) = (UInt8(truncatingIfNeeded: offset >> 8), UInt8(truncatingIfNeeded: offset))
        let answer = try await Self.answer(CommandAPDU(0x00, 0xD6, high, low, data: data), channel)
        guard answer.status == .ok else { throw .stopped("it does not take a message: \(answer.status)") }
    }
}

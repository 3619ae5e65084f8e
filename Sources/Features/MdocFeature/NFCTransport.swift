// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import ISO7816
import Text

/// Carries messages by ENVELOPE and GET RESPONSE. ISO/IEC 18013-5, 8.3.3.1.2.
@Loop package final class NFCTransport: MdocTransport {
    /// The longest data of a command and of an answer, in bytes.
    package typealias Limits = (command: Int, response: Int)

    package let way = MdocWay.nfc
    package let caution: String? = nil

    private static let application: [UInt8] = [0xA0, 0x00, 0x00, 0x02, 0x48, 0x04, 0x00]
    private static let envelope: UInt8 = 0xC3
    private static let messageTag: UInt32 = 0x53
    /// The longest header of object 53.
    private static let overhead = 4
    private static let shortLimits = (command: 255, response: 256)
    private static let wrongLength = StatusWord(0x6700)
    /// What wallets answer that ask their holder, or are not ready. ISO/IEC 7816-4: conditions of use not satisfied, application not
    /// found (the wallet has ended), no precise diagnosis (what Android says for a wallet that fails).
    private static let notNow = [StatusWord(0x6985), StatusWord(0x6A82), StatusWord(0x6F00)]

    private let channel: any CardChannel
    private var limits: Limits
    /// The message that is sent, as object 53.
    private var object: [UInt8] = []
    /// The part of it that `receive` sends.
    private var lastPart: [UInt8] = []

    /// Selects the application for data transfer. `limits` is what the phone takes; `hasExtendedLength` says whether the
    /// reader takes more than 255 bytes.
    package init(
        on channel: any CardChannel,
        _ limits: Limits,
        hasExtendedLength: Bool
    ) async throws(MdocTransportError) {
        self.channel = channel
        self.limits = hasExtendedLength ? limits : Self.shortLimits
        let select = CommandAPDU(0x00, 0xA4, 0x04, 0x00, data: Self.application, le: 256)
        let answer: ResponseAPDU
        do throws(CardError) {
            answer = try await CompletingChannel(channel).transmit(select)
        } catch {
            throw Self.fault(error)
        }
        guard answer.status == .ok else {
            throw .connectionFailed("the phone does not take messages over NFC: \(answer.status)")
        }
    }

    package func send(_ message: [UInt8]) async throws(MdocTransportError) {
        object = BERTLV(Self.messageTag, message).encoded
        try await sendAllButLast()
    }

    private func sendAllButLast() async throws(MdocTransportError) {
        var rest = object[...]
        while rest.count > limits.command {
            let part = CommandAPDU(0x10, Self.envelope, 0x00, 0x00, data: Array(rest.prefix(limits.command)))
            guard let answer = try await transmit(part) else { return try await sendAllButLast() }
            guard answer.status == .ok else { throw Self.refused(answer.status) }
            rest = rest.dropFirst(limits.command)
        }
        lastPart = Array(rest)
    }

    package func receive(_ progress: @escaping @Sendable (Int) -> Void) async throws(MdocTransportError) -> [UInt8] {
        let command = CommandAPDU(0x00, Self.envelope, 0x00, 0x00, data: lastPart, le: limits.response)
        guard var answer = try await transmit(command) else {
            try await sendAllButLast()
            return try await receive(progress)
        }
        var received = answer.data
        while answer.status.sw1 == 0x61 {
            progress(received.count)
            let count = Int(answer.status.sw2)
            let more = CommandAPDU(0x00, 0xC0, 0x00, 0x00, le: count == 0 ? limits.response : count)
            guard let next = try await transmit(more) else { throw Self.refused(Self.wrongLength) }
            // A part without data would allow an answer that does not end.
            guard !next.data.isEmpty || next.status.sw1 != 0x61 else {
                throw .malformed("the phone announces data and sends none")
            }
            received += next.data
            guard received.count <= MdocMessage.maximumBytes + Self.overhead else { throw .tooLarge }
            answer = next
        }
        guard answer.status == .ok else { throw Self.refused(answer.status) }
        progress(received.count)
        guard let object = try? BERTLV(received), object.tag == Self.messageTag else {
            throw .malformed("the phone answers without object 53")
        }
        guard !object.value.isEmpty else { throw .connectionLost("the phone has ended the session") }
        return object.value
    }

    package func close(_ last: [UInt8]?) async {
        guard let last, (try? await send(last)) != nil else { return }
        _ = try? await transmit(CommandAPDU(0x00, Self.envelope, 0x00, 0x00, data: lastPart, le: limits.response))
    }

    /// Sends a command.
    /// - Returns: nil if the reader or the phone has no extended lengths after all: the message begins again in short
    ///   commands. The phone has got nothing of it yet.
    private func transmit(_ command: CommandAPDU) async throws(MdocTransportError) -> ResponseAPDU? {
        guard !Task.isCancelled else { throw .cancelled }
        do throws(CardError) {
            let answer = try await channel.transmit(command)
            guard command.isExtended, answer.status == Self.wrongLength else { return answer }
        } catch {
            guard command.isExtended, error == .tooLong else { throw Self.fault(error) }
        }
        limits = Self.shortLimits
        return nil
    }

    private static func refused(_ status: StatusWord) -> MdocTransportError {
        let words: Phrase = "the phone refuses to go on: \(status)"
        return notNow.contains(status) ? .notNow(words) : .connectionLost(words)
    }

    private static func fault(_ error: CardError) -> MdocTransportError {
        switch error {
        // A phone that is moved away does not answer before its removal is reported.
        case .removed, .reset, .mute, .other: .phoneLeft
        case .cancelled: .cancelled
        case .exclusive, .noResources, .serviceUnavailable, .accessDenied, .tooLong:
            .connectionLost("the phone does not answer: \(error)")
        }
    }
}

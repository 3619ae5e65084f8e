// SPDX-License-Identifier: GPL-3.0-or-later

/// Sends a command once more if its answer refuses it with another status word than "not found": a disturbed answer must
/// not make another card of the right one. A card that means its refusal gives it twice.
///
/// It is for commands that may be sent twice, such as those of a recognition: SELECT and READ BINARY without a channel.
package struct RepeatingChannel: CardChannel {
    private let base: CompletingChannel

    package init(_ base: any CardChannel) { self.base = (base as? RepeatingChannel)?.base ?? CompletingChannel(base) }

    package func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        let answer = try await base.transmit(command)
        guard Self.mayBeDisturbed(answer.status, of: command) else { return answer }
        return try await base.transmit(command)
    }

    private static func mayBeDisturbed(_ status: StatusWord, of command: CommandAPDU) -> Bool {
        switch status.value {
        // Done, not found, and done with a warning, such as the end of a file or the tries that are left.
        case 0x9000, 0x6A82, 0x6200...0x63FF: false
        // READ BINARY behind the end of a file.
        case 0x6B00: command.ins & 0xFE != 0xB0
        default: true
        }
    }
}

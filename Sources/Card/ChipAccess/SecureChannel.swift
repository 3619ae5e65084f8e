// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816
package import Text

/// Secure messaging over another channel, on the side of the terminal.
///
/// The first failure closes the channel: a lost answer, a forged one, an unprotected one. No command is sent twice.
package final class SecureChannel {
    private let base: any CardChannel
    private var messaging: SecureMessaging

    package init(_ messaging: consuming SecureMessaging, over base: any CardChannel) {
        self.base = base
        self.messaging = messaging
    }

    /// Whether the channel refuses every further command.
    package var isClosed: Bool { messaging.isDead }

    /// Sends a protected command and returns the plain answer.
    /// - Throws: `.card` when no answer came; `.status` for an unprotected error status; `.protocolViolation`.
    package func exchange(_ command: CommandAPDU) async throws(ChipError) -> ResponseAPDU {
        try await exchange(command, data: Secret(command.data))
    }

    /// Sends a protected command whose data must not lie in ordinary memory. They are wiped before it goes out.
    package func exchange(_ header: CommandAPDU, data: consuming Secret) async throws(ChipError) -> ResponseAPDU {
        let command = try wrap(header, data: data)
        let answer: ResponseAPDU
        do throws(ChipError) {
            answer = try await base.exchange(command)
        } catch {
            messaging.close()
            throw error
        }
        if answer.data.isEmpty, answer.status != .ok {
            messaging.close()
            throw .status(answer.status)
        }
        return try messaging.unwrap(answer)
    }

    /// Consumes the data, so that they are wiped when this returns.
    private func wrap(_ header: CommandAPDU, data: consuming Secret) throws(ChipError) -> CommandAPDU {
        try messaging.wrap(header, data: data)
    }
}

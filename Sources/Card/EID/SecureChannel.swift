// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816
package import Secrets
import Synchronization

/// Secure messaging round another channel, from the terminal's side.
///
/// Whatever goes wrong in it, once, closes it: a lost answer, a forged one, an unprotected one. It never sends a
/// command twice.
package final class SecureChannel: CardChannel {
    private let base: any CardChannel
    private let messaging: Mutex<SecureMessaging>

    package init(_ messaging: consuming SecureMessaging, over base: any CardChannel) {
        self.base = base
        self.messaging = Mutex(messaging)
    }

    /// Will it refuse every further command?
    package var isClosed: Bool { messaging.withLock { $0.isDead } }

    /// Sends a command protected and gives its plain answer.
    /// - Throws: `.card` when no answer came; `.status` for an unprotected error status; `.protocolViolation`.
    package func exchange(_ command: CommandAPDU) async throws(EIDError) -> ResponseAPDU {
        try await send(try wrap(command, data: Secret(command.data)))
    }

    /// The same with data that must not lie in ordinary memory; they are wiped before the command goes out.
    package func exchange(_ header: CommandAPDU, data: consuming Secret) async throws(EIDError) -> ResponseAPDU {
        try await send(try wrap(header, data: data))
    }

    /// `exchange` for users of channels; what is not a `CardError` becomes `.other`.
    package func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        do throws(EIDError) {
            return try await exchange(command)
        } catch {
            switch error {
            case .card(let error): throw error
            case .status(let status): throw .other("unprotected status \(status) in the secure channel")
            case .protocolViolation(let what), .unsupported(let what): throw .other(what)
            }
        }
    }

    private func wrap(_ header: CommandAPDU, data: consuming Secret) throws(EIDError) -> CommandAPDU {
        let data = data
        return try messaging.withLock { messaging throws(EIDError) in
            do throws(SecureMessagingError) {
                return try messaging.wrap(header, data: data)
            } catch {
                throw EIDError(error)
            }
        }
    }

    private func send(_ command: CommandAPDU) async throws(EIDError) -> ResponseAPDU {
        let answer: ResponseAPDU
        do throws(CardError) {
            answer = try await base.transmit(command)
        } catch {
            close()
            throw .card(error)
        }
        if answer.data.isEmpty, answer.status != .ok {
            close()
            throw .status(answer.status)
        }
        return try messaging.withLock { messaging throws(EIDError) in
            do throws(SecureMessagingError) {
                return try messaging.unwrap(answer)
            } catch {
                throw EIDError(error)
            }
        }
    }

    private func close() { messaging.withLock { $0.close() } }
}

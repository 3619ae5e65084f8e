// SPDX-License-Identifier: GPL-3.0-or-later
package import EID
import ISO7816
package import Readers
package import Secrets

/// A German eID card in software: bytes in, bytes out, as strict as a real one. It forgets nothing as long as it
/// exists: a changed PIN is the new PIN, a spent try is spent.
package actor VirtualCard {
    /// What the reader hears.
    package enum Reply: Sendable, Equatable {
        case answer([UInt8])
        case mute
        /// The card is gone, by a fault of its description.
        case removed
    }

    /// What a test may know of a card; never a password.
    package struct State: Sendable, Equatable {
        /// Command APDUs since the insertion.
        package var apdus: Int
        package var retryCounter: Int
        package var pukCounter: Int
        package var isDeactivated: Bool
        /// The PIN is still the five-digit one.
        package var isTransport: Bool
        /// PINs, right or wrong, that have been judged since the card was made.
        package var judgedPINs: Int
        /// Faults of the description that have not happened yet.
        package var faultsLeft: Int
    }

    /// Circumstances that a description does not speak of.
    package struct Surroundings: Sendable {
        /// A self-signed CV certificate of the authority that the card trusts, DER; nil: our test authority.
        package var trustPoint: [UInt8]?
        /// The day that the card believes it is; nil: the day from which the trust point is valid. A card has no
        /// clock, it learns the day from certificates. TR-03110-2 2.3.2.
        package var currentDate: CVDate?
        package var random: CardRandom

        package init(trustPoint: [UInt8]? = nil, currentDate: CVDate? = nil, random: CardRandom = .system) {
            (self.trustPoint, self.currentDate, self.random) = (trustPoint, currentDate, random)
        }
    }

    /// A contactless card's answer as the reader builds it: category indicator, service data, capabilities (command
    /// chaining, extended length) and status as historical bytes. PC/SC part 3 3.1.3.2.3, ISO 7816-4 8.1.1.
    package static let answerToReset: [UInt8] = [
        0x3B, 0x8A, 0x80, 0x01, 0x80, 0x31, 0xF8, 0x73, 0xF7, 0x41, 0xE0, 0x82, 0x90, 0x00, 0x75,
    ]

    /// The reader that holds this card has a keypad.
    package nonisolated let hasKeypad: Bool
    private nonisolated let latency: Int
    private let system: CardOperatingSystem
    private var faults: [VirtualCardDescription.Fault]
    private var apdus = 0
    private var stay: UInt64 = 0
    private var random: CardRandom
    private var pause: Task<Void, Never>?

    /// Takes the secrets out of `description`.
    /// - Throws: `CardShelfError.invalid`, which names the entry.
    package init(
        _ description: VirtualCardDescription = .init(),
        in surroundings: Surroundings = .init()
    ) throws(CardShelfError) {
        system = try CardOperatingSystem(description, surroundings)
        hasKeypad = description.hasKeypad
        latency = description.latency
        faults = description.faults
        random = surroundings.random
    }

    package var state: State {
        State(
            apdus: apdus,
            retryCounter: system.passwords.retryCounter,
            pukCounter: system.passwords.pukCounter,
            isDeactivated: system.passwords.isDeactivated,
            isTransport: system.passwords.isTransport,
            judgedPINs: system.passwords.judgedPINs,
            faultsLeft: faults.count
        )
    }

    /// Is this the PIN? Costs no try; for tests, which must not guess.
    package func hasPIN(_ pin: consuming Secret) -> Bool { system.passwords.hasPIN(pin) }

    /// A new insertion begins: APDUs count from zero, no channel is left. The first command of an insertion does the same
    /// when it comes before.
    package func enterReader(stay: UInt64) {
        guard stay > self.stay else { return }
        self.stay = stay
        apdus = 0
        system.reset()
    }

    /// The card leaves: a running wait for an answer ends, no channel is left.
    package func leaveReader(stay: UInt64) {
        guard stay == self.stay else { return }
        pause?.cancel()
        system.reset()
    }

    /// Power on or warm reset: every channel and right is forgotten, the count of APDUs goes on.
    package func reset() { system.reset() }

    /// Runs one command APDU, or the fault that is due. `stay` counts up with each insertion of this card: a new one
    /// starts the count of APDUs again, one that is over gets no answer.
    package func exchange(_ command: [UInt8], stay: UInt64 = 1) async -> Reply {
        guard stay >= self.stay else { return .removed }
        enterReader(stay: stay)
        let due = faults.firstIndex { $0.afterAPDU == apdus }
        let fault = due.map { faults.remove(at: $0).action }
        apdus += 1
        let reply =
            switch fault {
            case nil: Reply.answer(system.process(command))
            case .remove: Reply.removed
            case .mute: Reply.mute
            case .status(let status): Reply.answer([status.sw1, status.sw2])
            case .removeAfter: removedAfter(command)
            case .truncate: truncated(system.process(command))
            case .garbage: garbage(as: system.process(command))
            }
        if latency > 0 {
            let pause = Task { [latency] in _ = try? await Task.sleep(for: .milliseconds(latency)) }
            self.pause = pause
            await pause.value
        }
        return reply
    }

    private func removedAfter(_ command: [UInt8]) -> Reply {
        _ = system.process(command)
        return .removed
    }

    private func truncated(_ answer: [UInt8]) -> Reply {
        .answer(Array(answer.prefix(answer.count / 2)))
    }

    private func garbage(as answer: [UInt8]) -> Reply {
        .answer((try? random.bytes(answer.count)) ?? [])
    }

    /// The bytes that the virtual user types on the keypad for this password.
    func typed(_ password: PasswordID) -> SecretBox {
        SecretBox(system.passwords.secret(password))
    }

    /// The same for the new PIN that a reader asks for.
    func typedForChange() -> SecretBox {
        system.passwords.isTransport ? SecretBox(Secret("123456".utf8)) : typed(.pin)
    }
}

// SPDX-License-Identifier: Apache-2.0
public import Secrets

/// The person in front of a workflow that `changePIN` or `authenticate` runs.
///
/// What a method asks can become void while it runs: the card leaves, or the workflow ends. Its task is cancelled then,
/// and whatever it returns goes nowhere.
public protocol WorkflowUser: Sendable {
    /// ENTER_PIN, ENTER_CAN, ENTER_NEW_PIN, ENTER_PUK: the digits, or nil to cancel the workflow. They are sent once and
    /// wiped; the same question comes again when they were wrong.
    func answer(_ question: SecretQuestion) async -> SecretBox?

    /// ACCESS_RIGHTS and CERTIFICATE: the optional rights that the service may have beside the required ones, or nil to
    /// cancel the workflow. Names that this library does not know are rights as well: show them.
    func agree(to request: ConsentRequest) async -> [String]?

    /// INSERT_CARD: a card is needed. `error` says why the one in `reader` cannot be used.
    func insertCard(error: String?, reader: String?) async

    /// The digits are to be typed on the reader's own keypad, which takes them after this returns true; false cancels.
    /// With `error` in the question nobody has typed: to return at once each time might go round for ever.
    func typeOnKeypad(_ question: SecretQuestion) async -> Bool

    /// PAUSE: the card slips. true when it lies better, false to cancel the workflow.
    func layCardBetter() async -> Bool

    /// The card has left while it worked. What was typed for it is gone; INSERT_CARD or the end follows.
    func cardLeft(reader: String) async

    /// STATUS, in percent, when it has changed.
    func progress(_ percent: Int) async

    /// READER, and everything else that came on the connection meanwhile.
    func other(_ event: Event) async
}

extension WorkflowUser {
    /// Cancels: consent is never given by default.
    public func agree(to request: ConsentRequest) async -> [String]? { nil }
    public func insertCard(error: String?, reader: String?) async {}
    public func typeOnKeypad(_ question: SecretQuestion) async -> Bool { question.error == nil }
    public func layCardBetter() async -> Bool { false }
    public func cardLeft(reader: String) async {}
    public func progress(_ percent: Int) async {}
    public func other(_ event: Event) async {}
}

/// What a workflow wants to have typed.
public struct SecretQuestion: Sendable, Equatable {
    public var kind: SecretKind
    public var reader: Reader
    /// Why the last value was not even given to the card; nil also after a value that the card found wrong.
    public var error: String?
    /// In a whole workflow: what became of the value before; nil when there was none, or `error` says it.
    public var last: LastAnswer?
    /// By which badged knows the question; nil when the server numbers none.
    public var number: Int?

    public init(
        kind: SecretKind,
        reader: Reader,
        error: String? = nil,
        last: LastAnswer? = nil,
        number: Int? = nil
    ) {
        (self.kind, self.reader, self.error, self.last, self.number) = (kind, reader, error, last, number)
    }

    /// PIN tries that the card has left, 3 to 0.
    public var triesLeft: Int? {
        guard case .eid(let retryCounter, _, _) = reader.card else { return nil }
        return retryCounter
    }
}

/// What became of a value that the user has typed.
public struct LastAnswer: Sendable, Equatable {
    /// What the card made of it.
    public enum Outcome: Sendable {
        case accepted
        /// The card has refused it.
        case wrong
        /// The card was away before it could say, so all is asked anew.
        case void
    }

    public var kind: SecretKind
    public var outcome: Outcome

    public init(kind: SecretKind, outcome: Outcome) { (self.kind, self.outcome) = (kind, outcome) }
}

/// Who wants to read what.
public struct ConsentRequest: Sendable, Equatable {
    public var rights: AccessRights
    public var service: ServiceCertificate

    public init(rights: AccessRights, service: ServiceCertificate) {
        (self.rights, self.service) = (rights, service)
    }
}

/// A `WorkflowUser` made of closures.
public struct WorkflowClosures: WorkflowUser {
    private let onSecret: @Sendable (SecretQuestion) async -> SecretBox?
    private let onConsent: @Sendable (ConsentRequest) async -> [String]?
    private let onInsertCard: @Sendable (_ error: String?, _ reader: String?) async -> Void
    private let onPause: @Sendable () async -> Bool

    /// - Parameters:
    ///   - secret: gives the PIN, CAN, PUK or new PIN.
    ///   - consent: gives the optional rights; the default cancels.
    ///   - insertCard: tells that a card is needed.
    ///   - pause: has the card laid better; the default cancels.
    public init(
        secret: @escaping @Sendable (SecretQuestion) async -> SecretBox?,
        consent: @escaping @Sendable (ConsentRequest) async -> [String]? = { _ in nil },
        insertCard: @escaping @Sendable (_ error: String?, _ reader: String?) async -> Void = { _, _ in },
        pause: @escaping @Sendable () async -> Bool = { false }
    ) {
        (onSecret, onConsent, onInsertCard, onPause) = (secret, consent, insertCard, pause)
    }

    public func answer(_ question: SecretQuestion) async -> SecretBox? { await onSecret(question) }
    public func agree(to request: ConsentRequest) async -> [String]? { await onConsent(request) }
    public func insertCard(error: String?, reader: String?) async { await onInsertCard(error, reader) }
    public func layCardBetter() async -> Bool { await onPause() }
}

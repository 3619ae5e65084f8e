// SPDX-License-Identifier: Apache-2.0
public import Text

/// A secret of a card that a workflow asks for.
public enum SecretKind: String, Sendable, CaseIterable {
    case pin = "PIN"
    /// Of eID cards.
    case can = "CAN"
    case newPIN = "NEW_PIN"
    case puk = "PUK"
    /// Of wallet cards that are new.
    case newPUK = "NEW_PUK"
    /// Of wallet cards that are new: the PIN that opens another wallet.
    case duressPIN = "DURESS_PIN"
    /// Of wallet cards: the password with which a computer is paired.
    case pairingPassword = "PAIRING_PASSWORD"

    /// The message that asks, such as `ENTER_PIN`.
    public var question: String { "ENTER_\(rawValue)" }
    /// The command that answers, such as `SET_PIN`.
    public var command: String { "SET_\(rawValue)" }
}

/// A question for a secret of a card: ENTER_PIN, ENTER_CAN, ENTER_NEW_PIN, ENTER_PUK, ENTER_NEW_PUK, ENTER_DURESS_PIN,
/// ENTER_PAIRING_PASSWORD.
public struct SecretQuestion: ServerMessage, NamedMessage {
    static let names = SecretKind.allCases.map(\.question)
    static let errorIsRefusal = false

    public var kind: SecretKind
    public var reader: Reader
    /// Why badged did not give the last value to the card; if `isUnanswered`, that the card has not answered to it; if
    /// `isWrong`, that it was wrong. nil also after a value that the card has refused.
    public var error: String?
    /// Whether badged gave the last value to the card, and the card did not answer: the value may have been right.
    public var isUnanswered = false
    /// Whether badged tried the last value with the card, and it was wrong. Only with `error`: values with tries have
    /// messages of their own.
    public var isWrong = false
    /// During a workflow such as `changePIN`: what happened to the value before. nil when there was none, or when
    /// `error` says it.
    public var last: LastAnswer?
    /// The number of the question. badged accepts an answer only for the open question. nil when the server has no
    /// numbers.
    public var number: Int?
    /// Tries that the card has left for this value, of wallet cards; nil when badged does not report them.
    public var retryCounter: Int?
    /// The user of the wallet, as `runWallet` has named it; nil for other cards.
    public var userID: String?

    /// Whether the question is about a wallet card. The workflows of these cards name a user, their operations do not.
    package var isOfWalletCard: Bool { userID != nil || reader.card?.keycard != nil }

    /// Whether badged tried the last value with the card, whatever came of it; false also if there was none.
    public var wasTried: Bool { isUnanswered || isWrong }

    public var refusal: ClientError? { error.map(ClientError.refused) }

    /// Tries that the card has left: of an eID card those for the PIN, 3 to 0; of a wallet card those for this value.
    public var triesLeft: Int? { retryCounter ?? reader.card?.eid?.retryCounter }
}

extension SecretQuestion {
    init(_ json: JSON) throws(Malformed) {
        let kind = try json.required("msg") { $0.string.flatMap { SecretKind(rawValue: String($0.dropFirst(6))) } }
        self.kind = kind
        reader = try json.required("reader", as: Reader.init(entry:))
        error = json["error"]?.string
        isUnanswered = json["unanswered"]?.bool ?? false
        isWrong = json["wrong"]?.bool ?? false
        number = json["question"]?.int
        retryCounter = json["retryCounter"]?.int
        userID = json["userId"]?.string
    }
}

/// What happened to a value that the user has typed.
public struct LastAnswer: Sendable, Equatable {
    public enum Outcome: Sendable {
        case accepted
        /// The card has refused the value.
        case wrong
        /// The card left before it answered, so everything is asked again.
        case void
    }

    public var kind: SecretKind
    public var outcome: Outcome

    public init(kind: SecretKind, outcome: Outcome) { (self.kind, self.outcome) = (kind, outcome) }
}

extension DaemonConnection {
    /// Answers a question: SET_PIN, SET_CAN, SET_NEW_PIN, SET_PUK, SET_NEW_PUK, SET_DURESS_PIN, SET_PAIRING_PASSWORD.
    /// nil is for a reader with keypad, where the user types the value on the reader.
    ///
    /// The value is in one buffer, which is wiped when the system has taken it. It answers this question alone: if
    /// another one is open by then, badged answers BAD_STATE.
    ///
    /// `isAutomatic` says that no person gives the value. badged then protects the tries of the card:
    /// docs/protocol/eid.md, Automatic answers.
    @discardableResult
    public func answer(
        _ question: SecretQuestion,
        _ secret: consuming Secret?,
        isAutomatic: Bool = false
    ) async throws(ClientError) -> RequestID {
        var members = JSON.question(question.number)
        if isAutomatic { members.append(.init("automatic", .bool(true))) }
        guard let secret = consume secret else { return try await send(question.kind.command, members) }
        return try await send(question.kind.command, members, value: secret)
    }
}

extension SecretQuestion: Question {
    var cardReader: String? { reader.name }

    func answer(by user: any CardUser, after previous: Submission?) async -> Answer? {
        var question = self
        if error == nil { question.last = previous.flatMap(outcome) }
        let members: [JSON.Member] = user.isAutomatic ? [.init("automatic", .bool(true))] : []
        if reader.hasKeypad {
            return await user.typeOnKeypad(question) ? Answer(command: kind.command, members: members) : nil
        }
        return await user.answer(question).map { Answer(command: kind.command, members: members, value: $0) }
    }

    /// What happened to the value that was sent before this question.
    private func outcome(of previous: Submission) -> LastAnswer? {
        if let verdict = previous.verdict { return verdict }
        guard let before = previous.prompt as? SecretQuestion else { return nil }
        // About values for wallet cards badged says what happened.
        if isOfWalletCard { return previous.cardLeft ? LastAnswer(kind: before.kind, outcome: .void) : nil }
        let isFewerTries = (triesLeft ?? 0) < (before.triesLeft ?? 0) && triesLeft != nil
        let outcome: LastAnswer.Outcome
        switch before.kind {
        case .pin where isFewerTries: outcome = .wrong
        case _ where previous.cardLeft: outcome = .void
        case .pin: outcome = kind == .newPIN ? .accepted : .void
        case .can, .puk: outcome = kind == before.kind ? .wrong : .accepted
        case .newPIN, .newPUK, .duressPIN, .pairingPassword: outcome = .void
        }
        return LastAnswer(kind: before.kind, outcome: outcome)
    }
}

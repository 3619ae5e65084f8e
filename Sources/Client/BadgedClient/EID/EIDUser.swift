// SPDX-License-Identifier: Apache-2.0
public import Text

/// Answers the questions of `changePIN` and `authenticate`.
public protocol EIDUser: CardUser {
    /// ACCESS_RIGHTS and CERTIFICATE: returns the optional rights that the service may have in addition to the required
    /// ones, or nil to cancel the workflow. A name that this library does not know is a right, too: show it to the
    /// user.
    func agree(to request: ConsentRequest) async -> [String]?
}

extension EIDUser {
    /// Cancels: consent is never given by default.
    public func agree(to request: ConsentRequest) async -> [String]? { nil }
}

/// What a service asks the user to agree to.
public struct ConsentRequest: Sendable, Equatable {
    public var rights: AccessRights
    public var service: ServiceCertificate

    public init(rights: AccessRights, service: ServiceCertificate) {
        self.rights = rights
        self.service = service
    }
}

/// An `EIDUser` made of closures.
public struct EIDClosures: EIDUser {
    private let onSecret: @Sendable (SecretQuestion) async -> SecretBox?
    private let onConsent: @Sendable (ConsentRequest) async -> [String]?
    private let onInsertCard: @Sendable (_ error: String?, _ reader: String?) async -> Void
    private let onPause: @Sendable () async -> Bool

    /// - Parameters:
    ///   - secret: returns the PIN, CAN, PUK or new PIN; nil cancels.
    ///   - consent: returns the optional rights that the service may have; the default cancels.
    ///   - insertCard: called when a card is needed.
    ///   - pause: called when the card has slipped; the default cancels.
    public init(
        secret: @escaping @Sendable (SecretQuestion) async -> SecretBox?,
        consent: @escaping @Sendable (ConsentRequest) async -> [String]? = { _ in nil },
        insertCard: @escaping @Sendable (_ error: String?, _ reader: String?) async -> Void = { _, _ in },
        pause: @escaping @Sendable () async -> Bool = { false }
    ) {
        onSecret = secret
        onConsent = consent
        onInsertCard = insertCard
        onPause = pause
    }

    public func answer(_ question: SecretQuestion) async -> SecretBox? { await onSecret(question) }
    public func agree(to request: ConsentRequest) async -> [String]? { await onConsent(request) }
    public func insertCard(error: String?, reader: String?) async { await onInsertCard(error, reader) }
    public func repositionCard() async -> Bool { await onPause() }
}

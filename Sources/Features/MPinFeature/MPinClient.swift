// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import MPin
import Text

/// What one connection has set up, from MPIN_INIT to MPIN_DESTROY or its end.
@Loop final class MPinClient {
    let flavour: Flavour
    /// MPinMFA: which customer of the service the users belong to.
    var clientID = ""
    var headers: [CustomHeader] = []
    var domains = TrustedDomains()
    /// The settings of the backend of MPIN_SET_BACKEND; nil before it.
    var settings: ClientSettings?
    /// By the name of a user in the store.
    var permits: [String: HeldPermit] = [:]

    init(_ flavour: Flavour) { self.flavour = flavour }

    /// The headers of every request.
    var allHeaders: [CustomHeader] { headers + (CustomHeader("X-MIRACL-CID", clientID).map { [$0] } ?? []) }

    /// The customer of users of MPinMFA; nil for MPin.
    var customer: String? { flavour == .mfa ? clientID : nil }

    /// A time permit between MPIN_START_AUTHENTICATION and the login.
    struct HeldPermit {
        /// nil if the server uses no time permits.
        let permit: (day: PermitDay, sum: SecretBox)?
        let begun: ContinuousClock.Instant

        /// How long a permit is used. A server accepts the permit of a day until 01:00 UTC of the next day. A permit of
        /// another day would count as a wrong PIN.
        static let lifetime = Duration.seconds(30 * 60)
    }
}

/// The client secret of a registration, between MPIN_CONFIRM_REGISTRATION and MPIN_FINISH_REGISTRATION. It is never
/// written to the disk, because a login with it needs no PIN.
@Loop final class PendingSecret {
    let regOTT: String
    var first: FirstShare?
    /// MPinMFA.
    var keyedShare: KeyedShare?
    var identity: KeyedIdentity?
    var clientSecret: Secret?

    init(regOTT: String) { self.regOTT = regOTT }

    /// A copy of the client secret; nil if there is none.
    var copy: SecretBox? {
        guard let secret = clientSecret.take() else { return nil }
        let copy = SecretBox(secret.clone())
        clientSecret = consume secret
        return copy
    }
}

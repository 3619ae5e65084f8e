// SPDX-License-Identifier: GPL-3.0-or-later

/// A fault or an unusual behaviour of the server, selected by the parameter `fault`.
package enum Fault: String, Sendable, CaseIterable {
    // The token
    case tcToken404 = "tctoken-404"
    case tcToken500 = "tctoken-500"
    case tcTokenEmpty = "tctoken-empty"
    case tcTokenHTML = "tctoken-html"
    case tcTokenMalformed = "tctoken-malformed"
    case tcTokenDoctype = "tctoken-doctype"
    case tcTokenEntities = "tctoken-entities"
    case tcTokenExternalEntity = "tctoken-external-entity"
    case tcTokenAttribute = "tctoken-attribute"
    case tcTokenBinding = "tctoken-binding"
    case tcTokenPathProtocol = "tctoken-path-protocol"
    case tcTokenNoServerAddress = "tctoken-no-server-address"
    case tcTokenHTTPServerAddress = "tctoken-http-server-address"
    case tcTokenHTTPRefresh = "tctoken-http-refresh"
    case tcTokenNoSession = "tctoken-no-session"
    case tcTokenPSKOdd = "tctoken-psk-odd"
    case tcTokenEmptyParameters = "tctoken-empty-parameters"
    case tcTokenNoRefresh = "tctoken-no-refresh"
    case tcTokenCommErrorOnly = "tctoken-comm-error-only"
    case tcTokenRedirect = "tctoken-redirect"
    case tcTokenRedirectRelative = "tctoken-redirect-relative"
    case tcTokenRedirectEmpty = "tctoken-redirect-empty"
    case tcTokenRedirectSchemeHTTP = "tctoken-redirect-scheme-http"
    case tcTokenRedirect301 = "tctoken-redirect-301"
    case tcTokenRedirectHTTP = "tctoken-redirect-http"
    case tcTokenRedirectLoop = "tctoken-redirect-loop"
    case tcTokenSlow = "tctoken-slow"
    case tcTokenDrip = "tctoken-drip"
    case tcTokenClose = "tctoken-close"
    case tcTokenTruncate = "tctoken-truncate"
    case tcTokenHuge = "tctoken-huge"

    // TLS to the PAOS endpoint
    case tlsPSKWrong = "tls-psk-wrong"
    case tlsPSKUnknown = "tls-psk-unknown"
    case tlsUnlisted = "tls-unlisted"
    case tlsExpired = "tls-expired"
    case tlsFuture = "tls-future"
    case tlsWronghost = "tls-wronghost"
    case tlsWeak = "tls-weak"
    case tlsNoPSK = "tls-no-psk"
    case tlsCiphers = "tls-ciphers"
    case tlsV11 = "tls-v11"
    case tlsPlain = "tls-plain"
    case tlsRefused = "tls-refused"
    case tlsSilent = "tls-silent"

    // In answer to StartPAOS
    case start500 = "start-500"
    case start404 = "start-404"
    case startEmpty = "start-empty"
    case startMalformed = "start-malformed"
    case startEntities = "start-entities"
    case startHuge = "start-huge"
    case startDeep = "start-deep"
    case startDrip = "start-drip"
    case startUnknown = "start-unknown"
    case startSOAPFault = "start-soap-fault"
    case startWrongOrder = "start-wrong-order"
    case startRelates = "start-relates"
    case startServerError = "start-server-error"
    case startSlow = "start-slow"
    case startClose = "start-close"

    // EAC1
    case eac1NoCerts = "eac1-no-certs"
    case eac1NoAT = "eac1-no-at"
    case eac1TwoAT = "eac1-two-at"
    case eac1NoDV = "eac1-no-dv"
    case eac1IsTerminal = "eac1-is-terminal"
    case eac1CertGarbage = "eac1-cert-garbage"
    case eac1CertSignature = "eac1-cert-signature"
    case eac1DVSignature = "eac1-dv-signature"
    case eac1UnknownRoot = "eac1-unknown-root"
    case eac1RogueRoot = "eac1-rogue-root"
    case eac1ATExpired = "eac1-at-expired"
    case eac1ATFuture = "eac1-at-future"
    case eac1DVExpired = "eac1-dv-expired"
    case eac1NoDescription = "eac1-no-description"
    case eac1TwoDescriptions = "eac1-two-descriptions"
    case eac1DescriptionHash = "eac1-description-hash"
    case eac1DescriptionGarbage = "eac1-description-garbage"
    case eac1NoSubjectURL = "eac1-no-subject-url"
    case eac1OtherSubjectURL = "eac1-other-subject-url"
    case eac1NoCommCerts = "eac1-no-comm-certs"
    case eac1ChatMore = "eac1-chat-more"
    case eac1ChatGarbage = "eac1-chat-garbage"
    case eac1AuxGarbage = "eac1-aux-garbage"
    case eac1AuxUnknown = "eac1-aux-unknown"
    case eac1500 = "eac1-500"

    // EAC2
    case eac2Signature = "eac2-signature"
    case eac2Challenge = "eac2-challenge"
    case eac2NoKey = "eac2-no-key"
    case eac2TwoKeys = "eac2-two-keys"
    case eac2XYOnly = "eac2-xy-only"
    case eac2OffCurve = "eac2-off-curve"
    case eac2NoLink = "eac2-no-link"
    case eac2OtherAT = "eac2-other-at"
    case eac2OldAT = "eac2-old-at"
    case eac2Unknown = "eac2-unknown"
    case eac2Skip = "eac2-skip"
    case eac2Close = "eac2-close"
    case eac2ServerError = "eac2-server-error"
    case eac2Slow = "eac2-slow"

    // Transmit
    case transmitMAC = "transmit-mac"
    case transmitPlain = "transmit-plain"
    case transmitGarbage = "transmit-garbage"
    case transmitNone = "transmit-none"
    case transmitMany = "transmit-many"
    case transmitStatus = "transmit-status"
    case transmitSkip = "transmit-skip"
    case transmitClose = "transmit-close"
    case transmit500 = "transmit-500"
    case transmitSlow = "transmit-slow"
    case transmitEndless = "transmit-endless"

    // The end
    case finalError = "final-error"
    case finalMalformed = "final-malformed"
    case finalUnknown = "final-unknown"

    // The refresh address
    case refreshOtherOrigin = "refresh-other-origin"
    case refreshOneHop = "refresh-one-hop"
    case refreshRelative = "refresh-relative"
    case refreshEmpty = "refresh-empty"
    case refresh404 = "refresh-404"
    case refresh200 = "refresh-200"
    case refreshHTTP = "refresh-http"
    case refreshLoop = "refresh-loop"
    case refreshUnlisted = "refresh-unlisted"
    case refreshRefused = "refresh-refused"

    /// How a client that follows the specifications ends.
    package enum Outcome: String, Sendable {
        /// With success.
        case success = "ok"
        case error
        /// Either way: the specifications leave it open, or clients differ.
        case own
    }

    /// The step of the fault: the first word of its name.
    package var stage: String { rawValue.split(separator: "-").first.map(String.init) ?? "" }

    /// The name without the step.
    var kind: String { String(rawValue.dropFirst(stage.count + 1)) }
}

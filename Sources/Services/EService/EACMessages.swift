// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
package import CountryAuthorities
package import EID

/// The answer of the card and the user to EAC1. TR-03112-7, 3.6.4.1, EAC1OutputType.
package struct EAC1Output: Sendable, Equatable {
    /// The rights that the user granted, in the terminal certificate's template.
    package let chat: CHAT
    /// The trust points of the card, the current one first, as PACE named them. They are sent to the server only when
    /// its request has no chain for any of them.
    package let authorityReferences: [[UInt8]]
    /// EF.CardAccess as the card sent it.
    package let efCardAccess: [UInt8]
    /// Comp() of the card's ephemeral key of PACE.
    package let idPICC: [UInt8]
    /// 8 bytes: the answer to GET CHALLENGE.
    package let challenge: [UInt8]

    package init(
        chat: CHAT,
        authorityReferences: [[UInt8]],
        efCardAccess: [UInt8],
        idPICC: [UInt8],
        challenge: [UInt8]
    ) {
        self.chat = chat
        self.authorityReferences = authorityReferences
        self.efCardAccess = efCardAccess
        self.idPICC = idPICC
        self.challenge = challenge
    }
}

/// The server's answer to EAC1. TR-03112-7, 3.6.4.2, EAC2InputType.
package struct EAC2: Sendable, Equatable {
    /// The terminal's key for chip authentication: 04 and two coordinates of equal length. The card checks that it is a
    /// point of its curve.
    package let ephemeralPublicKey: [UInt8]
    /// r and s at full length; nil when `EServiceConnection.sendChallenge` must fetch the signature.
    package let signature: [UInt8]?
    /// The certificates of the request and of this message.
    package let certificates: CVCertificatePool

    package init(ephemeralPublicKey: [UInt8], signature: [UInt8]?, certificates: CVCertificatePool) {
        self.ephemeralPublicKey = ephemeralPublicKey
        self.signature = signature
        self.certificates = certificates
    }
}

/// The result of chip authentication. TR-03112-7, 3.6.4.2, EAC2OutputType.
package struct EAC2Output: Sendable, Equatable {
    package let efCardSecurity: [UInt8]
    /// 8 bytes, data object 82.
    package let authenticationToken: [UInt8]
    /// 8 bytes, data object 81.
    package let nonce: [UInt8]

    package init(efCardSecurity: [UInt8], authenticationToken: [UInt8], nonce: [UInt8]) {
        self.efCardSecurity = efCardSecurity
        self.authenticationToken = authenticationToken
        self.nonce = nonce
    }
}

/// The next step that the server requests.
package enum ServerStep: Sendable, Equatable {
    /// These commands must be sent to the card; there is at least one.
    case transmit([InputAPDU])
    /// The server ended without an error. A StartPAOSResponse with an error is thrown as `Start_Paos_Response_Error`.
    case finished
}

/// A command of the server for the card. TR-03112-6, 3.2.5.
package struct InputAPDU: Sendable, Equatable {
    package let command: [UInt8]
    /// Prefixes of the status words that are acceptable; when empty, every status word is.
    package let acceptableStatusCodes: [[UInt8]]

    package init(command: [UInt8], acceptableStatusCodes: [[UInt8]] = []) {
        self.command = command
        self.acceptableStatusCodes = acceptableStatusCodes
    }

    /// Whether the batch continues after a response with this status word.
    package func accepts(_ status: UInt16) -> Bool {
        let bytes = [UInt8(truncatingIfNeeded: status >> 8), UInt8(truncatingIfNeeded: status)]
        return acceptableStatusCodes.isEmpty || acceptableStatusCodes.contains { bytes.starts(with: $0) }
    }
}

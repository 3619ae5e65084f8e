// SPDX-License-Identifier: GPL-3.0-or-later
package import EID

/// What the card and the user gave for EAC1. TR-03112-7, 3.6.4.1, EAC1OutputType.
package struct EAC1Output: Sendable, Equatable {
    /// The rights that the user granted, in the terminal certificate's template.
    package let chat: CHAT
    /// What the card's PACE named: the trust points that a chain may start from, the current one first. The server is
    /// told only when the request has no chain for any of them.
    package let authorityReferences: [[UInt8]]
    /// The file as the card gave it.
    package let efCardAccess: [UInt8]
    /// Comp() of the card's ephemeral key in PACE.
    package let idPICC: [UInt8]
    /// 8 bytes, of GET CHALLENGE.
    package let challenge: [UInt8]

    package init(
        chat: CHAT,
        authorityReferences: [[UInt8]],
        efCardAccess: [UInt8],
        idPICC: [UInt8],
        challenge: [UInt8]
    ) {
        (self.chat, self.authorityReferences) = (chat, authorityReferences)
        (self.efCardAccess, self.idPICC, self.challenge) = (efCardAccess, idPICC, challenge)
    }
}

/// What the server answers to EAC1. TR-03112-7, 3.6.4.2, EAC2InputType.
package struct EAC2: Sendable, Equatable {
    /// The terminal's key for chip authentication: uncompressed, 04 and two coordinates of equal length; not yet
    /// checked against the card's curve.
    package let ephemeralPublicKey: [UInt8]
    /// r and s at full length; nil: `EServiceConnection.sendChallenge` fetches it.
    package let signature: [UInt8]?
    /// Those of the request, and what came with this message.
    package let certificates: CVCertificatePool

    package init(ephemeralPublicKey: [UInt8], signature: [UInt8]?, certificates: CVCertificatePool) {
        (self.ephemeralPublicKey, self.signature) = (ephemeralPublicKey, signature)
        self.certificates = certificates
    }

    /// Comp() of the key: the x coordinate at full length. TR-03110-3, A.2.2.3.
    package var compressedKey: [UInt8] {
        Array(ephemeralPublicKey.dropFirst().prefix(ephemeralPublicKey.count / 2))
    }
}

/// What chip authentication gave. TR-03112-7, 3.6.4.2, EAC2OutputType.
package struct EAC2Output: Sendable, Equatable {
    package let efCardSecurity: [UInt8]
    /// 8 bytes, data object 82.
    package let authenticationToken: [UInt8]
    /// 8 bytes, data object 81.
    package let nonce: [UInt8]

    package init(efCardSecurity: [UInt8], authenticationToken: [UInt8], nonce: [UInt8]) {
        (self.efCardSecurity, self.authenticationToken, self.nonce) = (efCardSecurity, authenticationToken, nonce)
    }
}

/// What the server wants next.
package enum ServerStep: Sendable, Equatable {
    /// These commands to the card, at least one.
    case transmit([InputAPDU])
    /// The server is satisfied: StartPAOSResponse without an error. One with an error is thrown as
    /// `Start_Paos_Response_Error`.
    case finished
}

/// A command of the server for the card. TR-03112-6, 3.2.5.
package struct InputAPDU: Sendable, Equatable {
    package let command: [UInt8]
    /// Beginnings of the status words that let the batch go on; none: every status does.
    package let acceptableStatusCodes: [[UInt8]]

    package init(command: [UInt8], acceptableStatusCodes: [[UInt8]] = []) {
        (self.command, self.acceptableStatusCodes) = (command, acceptableStatusCodes)
    }

    /// Does a response with this status (SW1 and SW2) let the batch go on?
    package func accepts(_ status: UInt16) -> Bool {
        let bytes = [UInt8(truncatingIfNeeded: status >> 8), UInt8(truncatingIfNeeded: status)]
        return acceptableStatusCodes.isEmpty || acceptableStatusCodes.contains { bytes.starts(with: $0) }
    }
}

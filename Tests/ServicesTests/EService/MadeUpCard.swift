// SPDX-License-Identifier: GPL-3.0-or-later
import EID
import TestSupport

@testable import EService

/// Answers with the form of a card's answers. The server accepts them up to chip authentication, which it refuses.
enum MadeUpCard {
    static let cardAccess = hex(
        """
        31553012060A04007F0007020204020202010202010D300D060804007F00070202020201023012060A04007F00070202030202020102020129
        301C060904007F000702020302300C060704007F0007010202010D020129
        """
    )

    static func eac1(_ request: AuthenticationRequest) -> EAC1Output {
        EAC1Output(
            chat: request.requiredCHAT ?? request.terminalCertificate.chat,
            authorityReferences: [request.documentVerifier.authorityReference],
            efCardAccess: cardAccess,
            idPICC: [UInt8](repeating: 7, count: 32),
            challenge: [1, 2, 3, 4, 5, 6, 7, 8]
        )
    }

    static let eac2 = EAC2Output(
        efCardSecurity: [0x30, 0x00],
        authenticationToken: [UInt8](repeating: 1, count: 8),
        nonce: [UInt8](repeating: 2, count: 8)
    )

    /// Runs the steps, and reports a failure to the server as a workflow does.
    /// - Returns: the first failure.
    static func authenticate(_ session: EServiceSession) async -> EServiceFailure? {
        do throws(EServiceFailure) {
            let output = eac1(try await session.request())
            let answer = try await session.sendEAC1(output)
            if answer.signature == nil { _ = try await session.sendChallenge(output.challenge) }
            _ = try await session.sendEAC2(eac2)
            return nil
        } catch {
            await session.fail(error.result)
            return error
        }
    }
}

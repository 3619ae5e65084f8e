// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Taps
import TestSupport
import Testing
import Text

@testable import BadgedClient
@testable import badgectl

@Suite("Credentials for programs", .timeLimit(.minutes(5)))
@Loop struct CredentialClientTests {
    @Test("the client library receives a credential with its numbers and its certificate, and a refusal")
    func library() async throws {
        let stage = try await CredentialStage(PKOCSite(issuers: [try Vectors.issuer()]))
        let connection = try await DaemonConnection.connect(to: try stage.server.listen(), keepsEvents: true)
        let status = try await connection.startCredentials()
        #expect(status == CredentialStatus(isWatching: true, isValidated: false, issuers: 1))
        var found: [Credential] = []
        for card in [try Vectors.plainCard(), try Vectors.certifiedCard(), #""signature":"wrong""#] {
            try await stage.tap(card)
            for await event in connection.events {
                guard let credential = event.message as? Credential else { continue }
                found.append(credential)
                break
            }
            await stage.remove()
        }
        #expect(found[0].key?.decimal == (try Vectors.text("own", "identifiers", "decimal64")))
        #expect(found[0].key?.numbers[75] == Hex.decode(try Vectors.text("own", "identifiers", "bits75")))
        #expect(found[0].certificate == nil && found[0].transaction.count == 16)
        #expect(found[1].certificate?.state == "valid" && found[1].transaction.count == 32)
        #expect(found[2].key == nil && found[2].reason == "wrongSignature")
        #expect(
            found.map(CredentialsCommand.line) == [
                "Simulator: 3f1e4cc6d712764d (4548157090586326605), pkoc-se1",
                "Simulator: 85a086012e15bb0d (9628843342944385805), pkoc-se2, certifica"
                    + "te valid of 0100BADGED000001 for CARD000000000042",
                "Simulator: no credential, wrong signature, pkoc-se1",
            ]
        )
        #expect(try await connection.stopCredentials().isWatching == false)
        connection.close()
        await stage.server.stopListening()
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import ReadersRemote
import Store
import TestSupport
import Testing
import Text
import Vault
import WalletFeature

@Suite("State of earlier versions")
struct OldStateTests {
    /// The state folder that badged 0.2.0~dev906 has left: a key for doors and one-time codes of user 1000, the pairing with
    /// a device that lends its readers, and a wallet card that was set up.
    @Test("keys, codes, pairings and wallet cards of badged 0.2.0~dev906 are there")
    func dev906() async throws {
        let folder = try TemporaryFolder()
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder.path)
        for name in ["store.db", "store.key"] {
            let file = testsFolder.appending(path: "Vectors/state-0.2.0-dev906/\(name)")
            let copy = try folder.write(name, try Data(contentsOf: file))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: copy)
        }
        let store = StateStore(folder: folder)

        let vault = Vault(store, now: { 59 })
        let keys = try await vault.keyList(of: 1000)
        #expect(keys.unreadable.isEmpty)
        #expect(Set(keys.keys.map(\.label)) == ["office", "office-otp"])
        let door = try #require(keys.keys.first { $0.label == "office" })
        _ = try await vault.signingKey(door.id, of: 1000)
        let codes = try #require(keys.keys.first { $0.label == "office-otp" })
        // RFC 6238 with the secret 1234567890.
        #expect(try await vault.code(codes.id, of: 1000).text == "263420")

        let remote = RemoteStore(store)
        #expect(
            try await remote.identity().fingerprint
                == "32759e3f199c847ce427b48e0cf64ad373eaa1cf0904a3fa2f8d9d4bf5b2ef66"
        )
        #expect(try await remote.devices(.lender).map(\.name) == ["phone"])

        let card = try #require(Hex.decode("f6389db36b1e94b445e33cae51c230b5"))
        let isPaired = try await KeycardPairings(store).pairing(with: card) != nil
        #expect(isPaired)
    }
}

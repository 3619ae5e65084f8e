// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Store
import Synchronization
import TestSupport
import Text
import Vault

/// A vault in a folder, with a clock that the test sets. The keys and the key of the store are in software or in a TPM.
final class VaultBench: Sendable {
    let folder = NSTemporaryDirectory() + "badged-vault-" + UUID().uuidString
    let clock = TestTime()
    let device: SoftwareTPM?
    private let current = Mutex<StateStore?>(nil)

    init(_ protection: KeyRecord.Protection = .software) async throws {
        device = protection == .tpm ? try await SoftwareTPM() : nil
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    /// The store of the vault that was opened last.
    var store: StateStore { current.withLock { $0 } ?? StateStore { nil } }

    /// Closes the store, which two programs cannot use at the same time.
    func close() { current.withLock { $0 = nil } }

    /// Opens the vault as the daemon does after its start. The one that was open before is closed.
    func opened() -> Vault {
        let tpm = device.map { TPM($0.path, isRequired: true, timeLimit: .seconds(240)) }
        close()
        let store = StateStore { [folder] () async throws(Failure) in
            try await onceLeft { () async throws(Failure) in
                try await Store.open(folder: folder, credentials: nil, tpm: tpm)
            }
        }
        current.withLock { $0 = store }
        return Vault(store, tpm: tpm, now: { [clock] in clock.now })
    }

    /// Opens the vault, and sets it up for user 1.
    func setUp() async throws -> Vault {
        let vault = opened()
        _ = try await vault.setUp(1)
        return vault
    }

    var database: URL { URL(filePath: folder + "/store.db") }
}

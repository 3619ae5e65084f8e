// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Store
import WalletFeature

extension KeycardPairings {
    /// Pairings in the state folder of the service. The store is opened when the first 3.x card is seen.
    init(environment: @escaping Environment = systemEnvironment) {
        self.init { () throws(StoreError) in
            guard let folder = environment("STATE_DIRECTORY"), !folder.isEmpty else { return nil }
            do throws(StoreError) {
                return try Store(folder: folder, credentials: environment("CREDENTIALS_DIRECTORY"))
            } catch {
                Log.error("cannot open the store: \(error.text)")
                throw error
            }
        }
    }
}

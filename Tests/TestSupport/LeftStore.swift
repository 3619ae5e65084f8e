// SPDX-License-Identifier: GPL-3.0-or-later
package import Store
package import Text

/// Opens a store that a test has just left. The task that opened it the first time, and an actor at the end of its last
/// call, may hold it a moment longer.
package func onceLeft<Value: Sendable>(
    _ open: @Sendable () async throws(Failure) -> Value
) async throws(Failure) -> Value {
    let end = ContinuousClock.now + .seconds(120)
    while true {
        do throws(Failure) {
            return try await open()
        } catch {
            guard error.code == .storeInUse, ContinuousClock.now < end else { throw error }
            await Task.yield()
        }
    }
}

extension StateStore {
    /// The store of a folder, also of one that a test has just left.
    package init(folder: String, tpm: TPM? = nil) {
        self.init { () async throws(Failure) in
            try await onceLeft { () throws(Failure) in try Store(folder: folder, tpm: tpm) }
        }
    }

    /// The same with a folder in a temporary one, which stays while the store may be opened.
    package init(folder: TemporaryFolder, _ name: String = "") {
        self.init { () async throws(Failure) in
            try await onceLeft { () throws(Failure) in try Store(folder: folder.path + name) }
        }
    }
}

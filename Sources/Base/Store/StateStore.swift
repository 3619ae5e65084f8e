// SPDX-License-Identifier: GPL-3.0-or-later

/// The store of the daemon, which is opened at its first use.
package actor StateStore {
    private let open: @Sendable () throws(StoreError) -> Store?
    private var store: Store?

    /// - Parameter open: opens the store; nil where there is no folder for it.
    package init(_ open: @escaping @Sendable () throws(StoreError) -> Store?) { self.open = open }

    /// Returns the store; nil where there is no folder for it. After a failure the next call tries again.
    package func opened() throws(StoreError) -> Store? {
        if store == nil { store = try open() }
        return store
    }

    /// Returns the store.
    /// - Throws: `.unavailable` where there is no folder for it.
    package func required() throws(StoreError) -> Store {
        guard let store = try opened() else { throw .unavailable("there is no state folder ($STATE_DIRECTORY)") }
        return store
    }
}

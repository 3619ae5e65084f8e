// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// The store of the daemon, which is opened at its first use.
package actor StateStore {
    private let exists: @Sendable () -> Bool
    private let failed: @Sendable (Failure) -> Void
    private let open: @Sendable () async throws(Failure) -> Store?
    private var store: Store?
    /// The opening in progress. Other callers wait for its result, because a store is opened only once.
    private var opening: Task<Result<Store?, Failure>, Never>?
    /// The last failure that was reported.
    private var fault: Failure?

    /// - Parameters:
    ///   - exists: whether the store was made before.
    ///   - failed: called with a failure to open it that differs from the last one. Clients can cause any number of
    ///     attempts.
    ///   - open: opens the store, or makes it; nil where there is no folder for it.
    package init(
        exists: @escaping @Sendable () -> Bool = { true },
        failed: @escaping @Sendable (Failure) -> Void = { _ in },
        _ open: @escaping @Sendable () async throws(Failure) -> Store?
    ) {
        self.exists = exists
        self.failed = failed
        self.open = open
    }

    /// Returns the store; nil where there is no folder for it. After a failure the next call tries again.
    package func opened() async throws(Failure) -> Store? {
        if let store { return store }
        let opening = self.opening ?? start()
        self.opening = opening
        let result = await opening.value
        if self.opening == opening { self.opening = nil }
        do throws(Failure) {
            store = try result.get()
            return store
        } catch {
            if fault != error { failed(error) }
            fault = error
            throw error
        }
    }

    private func start() -> Task<Result<Store?, Failure>, Never> {
        Task { [open] in await Result(of: open) }
    }

    /// Returns the store if it was made before. Commands that only look at a card use this, so that they make no file
    /// and load no library.
    package func existing() async throws(Failure) -> Store? {
        guard store != nil || exists() else { return nil }
        return try await opened()
    }

    /// Returns the store.
    /// - Throws: `.unavailable` where there is no folder for it.
    package func required() async throws(Failure) -> Store {
        guard let store = try await opened() else {
            throw .storeUnavailable("there is no state folder ($STATE_DIRECTORY)")
        }
        return store
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

extension Failure {
    /// Runs work whose failure changes no answer, and logs the failure. `what` is what it means for the user.
    /// - Returns: the result; nil after a failure.
    @discardableResult
    package static func logged<Value>(
        _ what: String,
        of work: () async throws(Failure) -> Value
    ) async -> Value? {
        do throws(Failure) {
            return try await work()
        } catch {
            Log.warning("\(what): \(error.logText)")
            return nil
        }
    }
}

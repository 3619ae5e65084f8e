// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

extension DaemonConnection {
    /// Checks the permissions of this user before a command waits for something or asks a question.
    ///
    /// An older badged does not say them, and refuses later.
    /// - Throws: `accessDenied` with those that are missing.
    func require(_ permissions: String...) async throws(ClientError) {
        guard let granted = try await info().permissions else { return }
        let missing = permissions.filter { !granted.contains($0) }
        guard missing.isEmpty else { throw .accessDenied(command: "", missing: missing, granted: granted) }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Synchronization

/// The folder with the trust anchors, for a program that runs for long: changed files are read again.
package final class TrustAnchorFolder: Sendable {
    private struct State {
        var anchors = TrustAnchors()
        /// nil: nothing was read yet.
        var stamps: [FileStamp]?
        /// Whether the signatures of the roots were checked.
        var isChecked = false
    }

    package let path: String
    private let mayBeMissing: Bool
    private let warn: @Sendable (String) -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - path: the folder; its subfolder `test` has the test authorities.
    ///   - mayBeMissing: whether a missing folder causes no warning.
    ///   - warn: gets a line for each certificate that is ignored.
    package init(_ path: String, mayBeMissing: Bool, warn: @escaping @Sendable (String) -> Void) {
        self.path = path
        self.mayBeMissing = mayBeMissing
        self.warn = warn
    }

    /// Reads the folder if a file has changed since the last time. Signatures are not checked yet: that needs
    /// libcrypto, which would take 2 MB of memory in an idle daemon.
    package func read() {
        state.withLock { read(&$0) }
    }

    /// Returns the anchors; reads the folder if a file has changed since the last time.
    package func current() -> TrustAnchors {
        state.withLock { state in
            read(&state)
            if !state.isChecked {
                let known = state.anchors.warnings.count
                state.anchors.removeForgeries(in: path)
                for warning in state.anchors.warnings.dropFirst(known) { warn("\(warning)") }
                state.isChecked = true
            }
            return state.anchors
        }
    }

    private func read(_ state: inout State) {
        let stamps = stamps()
        if stamps == state.stamps { return }
        state = State(stamps: stamps)
        if mayBeMissing, access(path, F_OK) != 0 { return }
        state.anchors = TrustAnchors(uncheckedFolder: path)
        for warning in state.anchors.warnings { warn("\(warning)") }
    }

    private func stamps() -> [FileStamp] {
        AuthorityUse.allCases.flatMap { use in
            let folder = path + use.subfolder
            return (CertificateFiles.names(in: folder) ?? []).map { FileStamp("\(folder)/\($0)") }
        }
    }
}

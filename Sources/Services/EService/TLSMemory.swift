// SPDX-License-Identifier: GPL-3.0-or-later
import CCurl

/// The TLS sessions of one authentication: a server that was met once is met again by resuming its session, with new
/// connections. Belongs to one thread.
///
/// Who resumes a session of TLS 1.2 has the master secret, so it is who showed the certificate that the session holds;
/// `TLSGuard` judges that certificate again. RFC 5246, 7.3.
final class TLSMemory {
    let pointer: OpaquePointer

    /// nil: without libcurl, or without memory.
    init?() {
        guard let pointer = ccurl_memory_new() else { return nil }
        self.pointer = pointer
    }

    deinit { ccurl_memory_free(pointer) }
}

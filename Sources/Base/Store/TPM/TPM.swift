// SPDX-License-Identifier: GPL-3.0-or-later
import CTPM
import Concurrency
import Glibc
import Synchronization
package import Text

/// The TPM 2.0 of this computer. It makes keys that never leave it, and encrypts bytes that only it can decrypt.
///
/// No key is stored in the TPM: badged stores each key, encrypted by the TPM, and loads it for one command. So the TPM
/// does not limit the number of keys, and nothing in it has to be removed.
package final class TPM: Sendable {
    package static let defaultPath = "/dev/tpmrm0"

    /// A device, or a Unix socket that takes the commands of a TPM.
    package let path: String
    /// Whether new keys must be in the TPM.
    package let isRequired: Bool
    private let timeLimit: Duration
    /// The TPM works on one command at a time, which may block.
    private let thread = Mutex<JobQueue?>(nil)
    /// What the thread has to do, for the users in turn: a door waits for a signature of one user, while another one makes
    /// keys.
    private let jobs = Mutex(UserQueue<@Sendable () -> Void>())

    package init(_ path: String = defaultPath, isRequired: Bool = false, timeLimit: Duration = .seconds(10)) {
        self.path = path
        self.isRequired = isRequired
        self.timeLimit = timeLimit
    }

    deinit { thread.withLock { $0?.finish() } }

    /// Whether a new key is made in the TPM: if there is one, or if it is required. `isExpected` also requires the TPM,
    /// because it was used before.
    /// - Throws: `.unavailable` if a TPM is required and there is none.
    package func takesNewKeys(isExpected: Bool = false) throws(Failure) -> Bool {
        do throws(Failure) {
            guard ctpm_probe(path) == CTPM_OK.rawValue else { throw unavailable() }
            try Self.load()
            return true
        } catch {
            guard !isRequired, !isExpected else { throw error }
            return false
        }
    }

    // MARK: Keys

    /// A key pair of P-256.
    package struct Key: Sendable, Equatable {
        /// 65 bytes, uncompressed.
        package let publicKey: [UInt8]
        /// The private part, which only the TPM can decrypt: at most 512 bytes.
        package let blob: [UInt8]

        package init(publicKey: [UInt8], blob: [UInt8]) { (self.publicKey, self.blob) = (publicKey, blob) }
    }

    /// Makes a key pair for ECDSA.
    package func makeKey() async throws(Failure) -> Key {
        try await commands { tpm throws(Failure) in
            var point = [UInt8](repeating: 0, count: 64)
            var blob = ctpm_blob()
            try Self.check(ctpm_make_key(tpm, &point, &blob))
            return Key(publicKey: [4] + point, blob: Self.bytes(&blob))
        }
    }

    /// Signs a SHA-256 digest. Returns r and s, 64 bytes.
    package func sign(digest: [UInt8], with key: Key) async throws(Failure) -> [UInt8] {
        guard digest.count == 32, key.publicKey.count == 65 else { throw .tpm(.malformed) }
        return try await commands { tpm throws(Failure) in
            guard var blob = Self.blob(key.blob) else { throw .tpm(.foreign) }
            var signature = [UInt8](repeating: 0, count: 64)
            try Self.check(ctpm_sign(tpm, Array(key.publicKey.dropFirst()), &blob, digest, &signature))
            return signature
        }
    }

    // MARK: Sealed bytes

    /// The length of secrets that can be sealed.
    package static let secretCount = 32
    private static let nameCount = 32

    /// Encrypts 32 bytes so that only this TPM can decrypt them. Blocks; see `onThread`.
    package func seal(_ secret: borrowing Secret) throws(Failure) -> [UInt8] {
        guard secret.count == Self.secretCount else { throw .tpm(.malformed) }
        return try connected(by: .now + timeLimit) { tpm throws(Failure) in
            var name = [UInt8](repeating: 0, count: Self.nameCount)
            var blob = ctpm_blob()
            try Self.check(
                secret.withBytes { ctpm_seal(tpm, $0.assumingMemoryBound(to: UInt8.self).baseAddress, &name, &blob) }
            )
            return name + Self.bytes(&blob)
        }
    }

    /// Decrypts what `seal` has made. Blocks; see `onThread`.
    package func unseal(_ sealed: [UInt8]) throws(Failure) -> Secret {
        guard sealed.count > Self.nameCount, var blob = Self.blob(sealed.dropFirst(Self.nameCount)) else {
            throw .tpm(.foreign)
        }
        return try connected(by: .now + timeLimit) { tpm throws(Failure) in
            try Secret(count: Self.secretCount) { out throws(Failure) in
                let start = out.assumingMemoryBound(to: UInt8.self).baseAddress
                try Self.check(ctpm_unseal(tpm, Array(sealed.prefix(Self.nameCount)), &blob, start))
            }
        }
    }

    // MARK: The thread

    /// Runs a block on the thread of the TPM, when it is the turn of the user for whom the task works.
    package func onThread<Value: Sendable>(_ block: @escaping @Sendable () -> Value) async throws(Failure) -> Value {
        let queue = thread.withLock { thread in
            if thread == nil { thread = JobQueue(thread: "badged-tpm") }
            return thread
        }
        guard let queue else { throw .tpm(.unavailable("the system cannot start a thread")) }
        let (value, user) = (OneShot<Value>(), Requester.uid)
        jobs.withLock { $0.add({ value.fill(block()) }, of: user) }
        // Each call lets one job run, which may be that of another call.
        queue.async { [self] in
            let next = jobs.withLock { $0.next() }
            next?()
        }
        return await value.value
    }

    /// Sends commands on the thread of the TPM. The time limit includes the wait for earlier commands.
    private func commands<Value: Sendable>(
        _ body: @escaping @Sendable (OpaquePointer) throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let end = ContinuousClock.now + timeLimit
        let result = try await onThread { [self] () -> Result<Value, Failure> in
            Result { () throws(Failure) in try connected(by: end, body) }
        }
        return try result.get()
    }

    private func connected<Value: ~Copyable>(
        by end: ContinuousClock.Instant,
        _ body: (OpaquePointer) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try Self.load()
        let rest = Int64((end - .now) / .milliseconds(1))
        guard rest > 0 else { throw .tpm(.timedOut) }
        var opened: OpaquePointer?
        let code = ctpm_open(path, rest, &opened)
        guard let tpm = opened else {
            if code == CTPM_GONE.rawValue, ctpm_probe(path) != CTPM_OK.rawValue { throw unavailable() }
            try Self.check(code)
            throw .tpm(.malformed)
        }
        defer { ctpm_close(tpm) }
        return try body(tpm)
    }

    private static func load() throws(Failure) {
        if let reason = ctpm_load() { throw .tpm(.unavailable(String(cString: reason))) }
    }

    /// Makes the error from errno. Call this right after the failed call.
    private func unavailable() -> Failure { .tpm(.unavailable("\(path): \(String(cString: strerror(errno)))")) }

    // MARK: Codes

    /// The bits of a code for its layer, and the bit of format-one codes, which can hold a parameter number. TPM 2.0
    /// Library, part 2, 6.6; TCG TSS 2.0 Overview, 3.
    private static let (layers, format) = (UInt32(0xFFFF_0000), UInt32(0x80))
    /// TPM_RC_LOCKOUT; TPM_RC_INTEGRITY without its parameter number.
    private static let (lockout, integrity) = (UInt32(0x921), UInt32(0x1F))

    private static func check(_ code: UInt32) throws(Failure) {
        switch code {
        case CTPM_OK.rawValue: return
        case CTPM_GONE.rawValue: throw .tpm(.gone)
        case CTPM_LATE.rawValue: throw .tpm(.timedOut)
        case CTPM_MALFORMED.rawValue: throw .tpm(.malformed)
        case lockout: throw .tpm(.lockedOut)
        case _ where code & layers == 0 && code & format != 0 && code & 0x3F == integrity: throw .tpm(.foreign)
        case _ where code & layers == 0: throw .tpm(.refused(code))
        // libtss2 has refused the answer.
        default: throw .tpm(.malformed)
        }
    }

    private static func bytes(_ blob: inout ctpm_blob) -> [UInt8] {
        let count = min(blob.count, Int(CTPM_BLOB))
        return withUnsafeBytes(of: &blob.bytes) { Array($0.prefix(count)) }
    }

    /// Returns nil for a length that no blob of a TPM has.
    private static func blob(_ bytes: some Collection<UInt8>) -> ctpm_blob? {
        guard !bytes.isEmpty, bytes.count <= Int(CTPM_BLOB) else { return nil }
        var blob = ctpm_blob()
        withUnsafeMutableBytes(of: &blob.bytes) { $0.copyBytes(from: bytes) }
        blob.count = bytes.count
        return blob
    }
}

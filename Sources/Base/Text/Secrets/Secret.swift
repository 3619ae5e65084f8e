// SPDX-License-Identifier: Apache-2.0
import Glibc
import Synchronization

/// Holds bytes (a PIN, CAN, PUK or key) that are wiped when the value is destroyed.
///
/// The type is not copyable and has no description. So a secret cannot get into a log, an error text or a crash report
/// by mistake.
public struct Secret: ~Copyable, @unchecked Sendable {
    private let storage: UnsafeMutableRawBufferPointer

    /// Copies `bytes`. The caller must wipe the source.
    public init(_ bytes: some Collection<UInt8>) {
        storage = .allocate(byteCount: bytes.count, alignment: 1)
        storage.copyBytes(from: bytes)
    }

    /// Makes `count` bytes by writing them in place; `body` gets the zeroed memory.
    public init<E: Error>(count: Int, _ body: (UnsafeMutableRawBufferPointer) throws(E) -> Void) throws(E) {
        storage = .allocate(byteCount: count, alignment: 1)
        if let base = storage.baseAddress { explicit_bzero(base, count) }
        try body(storage)  // if `body` throws, deinit wipes the bytes that it wrote
    }

    public var count: Int { storage.count }

    /// Lends the bytes to `body`, which must not keep them.
    public borrowing func withBytes<R: ~Copyable, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        try body(UnsafeRawBufferPointer(storage))
    }

    /// Returns a copy.
    public borrowing func clone() -> Secret {
        Secret(UnsafeRawBufferPointer(storage))
    }

    /// Returns the bytes of this secret followed by the bytes of `other`.
    public borrowing func appending(_ other: borrowing Secret) -> Secret {
        other.withBytes { appending($0) }
    }

    /// Returns the bytes of this secret followed by `bytes`.
    public borrowing func appending(_ bytes: some Collection<UInt8>) -> Secret {
        let own = UnsafeRawBufferPointer(storage)
        return Secret(count: own.count + bytes.count) { target in
            target.copyMemory(from: own)
            UnsafeMutableRawBufferPointer(rebasing: target[own.count...]).copyBytes(from: bytes)
        }
    }

    /// Returns a copy of the bytes in `range`; nil if the range is not inside the secret.
    public borrowing func part(_ range: Range<Int>) -> Secret? {
        guard range.lowerBound >= 0, range.upperBound <= storage.count else { return nil }
        return Secret(UnsafeRawBufferPointer(rebasing: storage[range]))
    }

    deinit {
        if let base = storage.baseAddress { explicit_bzero(base, storage.count) }
        storage.deallocate()
    }
}

/// Holds one `Secret` until it is taken once. It passes a secret through code that needs copyable values.
public final class SecretBox: Sendable {
    private let content: Mutex<Secret?>

    public init(_ secret: consuming Secret) {
        content = Mutex(consume secret)
    }

    /// Returns the secret on the first call and nil on each later call, so that a PIN is never used twice.
    public func take() -> Secret? {
        content.withLock { $0.take() }
    }
}

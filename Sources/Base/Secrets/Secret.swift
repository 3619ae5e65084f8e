// SPDX-License-Identifier: Apache-2.0
import Glibc
import Synchronization

/// Bytes (a PIN, CAN, PUK or key) that are wiped when the value goes away.
///
/// It cannot be copied and has no description, so it cannot end in a log, an error text or a crash report by accident.
public struct Secret: ~Copyable, @unchecked Sendable {
    private let storage: UnsafeMutableRawBufferPointer

    /// Copies `bytes`; wiping the source is the caller's duty.
    public init(_ bytes: some Collection<UInt8>) {
        storage = .allocate(byteCount: bytes.count, alignment: 1)
        storage.copyBytes(from: bytes)
    }

    /// Makes `count` bytes by writing them in place; `body` gets the zeroed memory.
    public init<E: Error>(count: Int, _ body: (UnsafeMutableRawBufferPointer) throws(E) -> Void) throws(E) {
        storage = .allocate(byteCount: count, alignment: 1)
        if let base = storage.baseAddress { explicit_bzero(base, count) }
        try body(storage)  // when it throws, deinit wipes what was written
    }

    public var count: Int { storage.count }

    /// Lends the bytes for the time of `body`; they must not be kept.
    public borrowing func withBytes<R: ~Copyable, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        try body(UnsafeRawBufferPointer(storage))
    }

    /// A second copy, for the rare place that really needs one.
    public borrowing func clone() -> Secret {
        Secret(UnsafeRawBufferPointer(storage))
    }

    deinit {
        if let base = storage.baseAddress { explicit_bzero(base, storage.count) }
        storage.deallocate()
    }
}

/// Holds one `Secret` until it is taken, once; passes it through what only carries copyable values.
public final class SecretBox: Sendable {
    private let content: Mutex<Secret?>

    public init(_ secret: consuming Secret) {
        content = Mutex(consume secret)
    }

    /// The secret on the first call, `nil` ever after: a PIN is never used twice.
    public func take() -> Secret? {
        content.withLock { $0.take() }
    }
}

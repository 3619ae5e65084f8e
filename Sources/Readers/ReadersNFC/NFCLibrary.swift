// SPDX-License-Identifier: GPL-3.0-or-later
import CNFC
import Glibc
import Synchronization

/// libnfc in this process: one context, made once and never given back, since nfc_exit takes the drivers of all.
///
/// What opens, lists and closes devices on USB goes through one lock: libusb 0.1, on which libnfc stands, keeps its list
/// of devices in global variables. A serial line has none, and must not wait while another one is found silent.
final class NFCLibrary: Sendable {
    /// nil when there is no memory for it.
    static let shared = NFCLibrary()

    /// Address of the `nfc_context`, which libnfc only reads from now on.
    private let context: UInt
    private let lock = Mutex(())

    private init?() {
        // libnfc writes its errors to our standard error, past the log; health checks say the same in words.
        setenv("LIBNFC_LOG_LEVEL", "0", 0)
        var context: OpaquePointer?
        nfc_init(&context)
        guard let context else { return nil }
        self.context = UInt(bitPattern: context)
    }

    /// Lends the context, for one device or (nil) for all.
    func withContext<R: Sendable>(for connection: ConnectionString?, _ body: (OpaquePointer) -> R) -> R? {
        guard let context = OpaquePointer(bitPattern: context) else { return nil }
        if let connection, connection.search == .byChip { return body(context) }
        return lock.withLock { _ in body(context) }
    }

    /// Devices that are found without touching what may be something else: those on USB, in LIBNFC_DEVICE and in
    /// libnfc's own configuration. Serial lines are searched only where that configuration, or LIBNFC_INTRUSIVE_SCAN,
    /// says so. The C function is nfc_list_devices.
    func list() -> [ConnectionString] {
        let most = 16
        let size = Int(NFC_BUFSIZE_CONNSTRING)
        let found = withContext(for: nil) { context -> [String] in
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: most * size, alignment: 16)
            defer { buffer.deallocate() }
            _ = buffer.initializeMemory(as: UInt8.self, repeating: 0)
            guard let base = buffer.baseAddress else { return [] }
            let count = nfc_list_devices(context, base.assumingMemoryBound(to: nfc_connstring.self), most)
            return (0..<min(count, most)).map { index in
                String(decoding: buffer[index * size..<(index + 1) * size].prefix { $0 != 0 }, as: UTF8.self)
            }
        }
        return (found ?? []).compactMap { ConnectionString($0) }
    }
}

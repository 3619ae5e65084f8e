// SPDX-License-Identifier: GPL-3.0-or-later
import CNFC
import Glibc
package import Host
import Synchronization

/// The one libnfc context of this process. It is never freed, because nfc_exit also frees the list of drivers that
/// every context uses.
///
/// One lock guards the opening, listing and closing of USB devices: libusb 0.1, which libnfc uses, keeps its list of
/// devices in global variables. Serial lines need no lock, and must not wait while a silent line is being opened.
package final class NFCLibrary: Sendable {
    /// nil when libnfc could not allocate its context.
    static let shared = NFCLibrary()

    /// Address of the `nfc_context`. libnfc only reads the context from now on.
    private let context: UInt
    private let lock = Mutex(())

    private init?() {
        // libnfc writes errors to standard error, past the log. Health checks report the same faults.
        setenv("LIBNFC_LOG_LEVEL", "0", 0)
        var context: OpaquePointer?
        nfc_init(&context)
        guard let context else { return nil }
        self.context = UInt(bitPattern: context)
    }

    /// Checks that libnfc uses the functions of `CNFC` instead of those of libusb 0.1.
    package static func checkReplacements() throws(StartError) {
        guard cnfc_is_in_force() == 0 else { return }
        throw StartError("usb_bulk_read of libusb is not replaced", hint: "install badged again")
    }

    /// Calls `body` with the context, for one device or (nil) for all.
    func withContext<R: Sendable>(for connection: ConnectionString?, _ body: (OpaquePointer) -> R) -> R? {
        guard let context = OpaquePointer(bitPattern: context) else { return nil }
        if let connection, connection.search == .byChip { return body(context) }
        return lock.withLock { _ in body(context) }
    }

    /// The devices on USB, in LIBNFC_DEVICE and in libnfc's configuration. Serial lines are probed only where that
    /// configuration or LIBNFC_INTRUSIVE_SCAN says so. The C function is nfc_list_devices.
    func list() -> [ConnectionString] {
        let capacity = 16
        let size = Int(NFC_BUFSIZE_CONNSTRING)
        let found = withContext(for: nil) { context -> [String] in
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity * size, alignment: 16)
            defer { buffer.deallocate() }
            _ = buffer.initializeMemory(as: UInt8.self, repeating: 0)
            guard let base = buffer.baseAddress else { return [] }
            let count = nfc_list_devices(context, base.assumingMemoryBound(to: nfc_connstring.self), capacity)
            return (0..<min(count, capacity)).map { index in
                String(decoding: buffer[index * size..<(index + 1) * size].prefix { $0 != 0 }, as: UTF8.self)
            }
        }
        return (found ?? []).compactMap { ConnectionString($0) }
    }
}

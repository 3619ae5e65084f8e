// SPDX-License-Identifier: GPL-3.0-or-later
import CSystemd
package import Text

/// A D-Bus message that is read from the beginning or written to the end. The C type is sd_bus_message.
///
/// Reading throws when a value has another type than expected.
package final class BusMessage {
    let raw: OpaquePointer

    /// Takes over the reference.
    init(_ raw: OpaquePointer) { self.raw = raw }

    deinit { csystemd_message_unref(raw) }

    private static let malformed = Malformed("another format than the interface defines")

    package enum Kind { case call, `return`, error, signal }

    package var kind: Kind? {
        switch UInt32(bitPattern: csystemd_message_kind(raw)) {
        case CSYSTEMD_CALL.rawValue: .call
        case CSYSTEMD_RETURN.rawValue: .return
        case CSYSTEMD_ERROR.rawValue: .error
        case CSYSTEMD_SIGNAL.rawValue: .signal
        default: nil
        }
    }

    private static func text(_ pointer: UnsafePointer<CChar>?) -> String { pointer.map { String(cString: $0) } ?? "" }

    package var path: String { Self.text(csystemd_message_path(raw)) }
    package var interface: String { Self.text(csystemd_message_interface(raw)) }
    package var member: String { Self.text(csystemd_message_member(raw)) }
    package var sender: String { Self.text(csystemd_message_sender(raw)) }
    /// The name of an error, such as `org.bluez.Error.InProgress`.
    package var errorName: String? { csystemd_message_error_name(raw).map { String(cString: $0) } }

    /// What an error says for people, such as `le-connection-abort-by-local`; at most 100 characters.
    package var errorText: String? {
        csystemd_message_error_text(raw).map {
            String(String.UnicodeScalarView(String(cString: $0).unicodeScalars.prefix(100)))
        }
    }

    /// The number of the call that this message answers.
    var replyCookie: UInt64? {
        var cookie: UInt64 = 0
        return csystemd_message_reply_cookie(raw, &cookie) >= 0 ? cookie : nil
    }

    // MARK: Reading

    private func check(_ code: Int32) throws(Malformed) { if code < 0 { throw Self.malformed } }

    private func code(_ type: Character) -> CChar { CChar(type.asciiValue ?? 0) }

    /// Reads a string or object path.
    package func string(_ type: Character = "s") throws(Malformed) -> String {
        var pointer: UnsafePointer<CChar>?
        // The result is 0 at the end of the container.
        guard csystemd_message_read_basic(raw, code(type), &pointer) > 0, let pointer else { throw Self.malformed }
        return String(cString: pointer)
    }

    package func number<Number: FixedWidthInteger>(_ type: Character, as _: Number.Type) throws(Malformed) -> Number {
        var value = Number()
        guard csystemd_message_read_basic(raw, code(type), &value) > 0 else { throw Self.malformed }
        return value
    }

    package func bool() throws(Malformed) -> Bool { try number("b", as: Int32.self) != 0 }

    package func bytes() throws(Malformed) -> [UInt8] {
        var (pointer, size): (UnsafeRawPointer?, Int) = (nil, 0)
        try check(csystemd_message_read_array(raw, code("y"), &pointer, &size))
        guard let pointer, size > 0 else { return [] }
        return [UInt8](UnsafeRawBufferPointer(start: pointer, count: size))
    }

    /// Enters a container, all of which must be read before `leave`.
    package func enter(_ type: Character, _ contents: String) throws(Malformed) {
        guard csystemd_message_enter_container(raw, code(type), contents) > 0 else { throw Self.malformed }
    }

    package func leave() throws(Malformed) { try check(csystemd_message_exit_container(raw)) }

    /// Whether the array that was entered has one more element; it is left at its end.
    package func hasNext() throws(Malformed) -> Bool {
        var type: CChar = 0
        let code = csystemd_message_peek_type(raw, &type, nil)
        try check(code)
        if code == 0 { try leave() }
        return code != 0
    }

    /// Enters a variant, and leaves it after `value`.
    package func variant<T>(_ type: String, _ value: @autoclosure () throws(Malformed) -> T) throws(Malformed) -> T {
        try enter("v", type)
        let value = try value()
        try leave()
        return value
    }

    /// Reads an array of strings; at most the first `maximum` are returned.
    package func strings(maximum: Int = 256) throws(Malformed) -> [String] {
        var found: [String] = []
        try enter("a", "s")
        while try hasNext() {
            let text = try string()
            if found.count < maximum { found.append(text) }
        }
        return found
    }

    /// The type of the value in the variant that follows.
    package func variantType() throws(Malformed) -> String {
        var (type, contents): (CChar, UnsafePointer<CChar>?) = (0, nil)
        guard csystemd_message_peek_type(raw, &type, &contents) > 0, type == code("v"), let contents else {
            throw Self.malformed
        }
        return String(cString: contents)
    }

    package func skip(_ types: String) throws(Malformed) { try check(csystemd_message_skip(raw, types)) }

    // MARK: Writing

    // A failed write makes sending the message fail.

    package func append(_ text: String, _ type: Character = "s") {
        _ = text.withCString { csystemd_message_append_basic(raw, code(type), $0) }
    }

    package func append<Number: FixedWidthInteger>(_ value: Number, _ type: Character) {
        withUnsafePointer(to: value) { _ = csystemd_message_append_basic(raw, code(type), $0) }
    }

    package func append(_ value: Bool) { append(Int32(value ? 1 : 0), "b") }

    package func append(_ bytes: [UInt8]) {
        container("a", "y") { for byte in bytes { append(byte, "y") } }
    }

    package func append(_ texts: [String]) {
        container("a", "s") { for text in texts { append(text) } }
    }

    package func container(_ type: Character, _ contents: String, _ body: () -> Void) {
        _ = csystemd_message_open_container(raw, code(type), contents)
        body()
        _ = csystemd_message_close_container(raw)
    }

    /// Writes an object of the answer to GetManagedObjects; `body` writes its interfaces.
    package func object(_ path: String, _ body: () -> Void) {
        container("e", "oa{sa{sv}}") {
            append(path, "o")
            container("a", "{sa{sv}}", body)
        }
    }

    /// Writes an interface of an object; `body` writes its properties.
    package func interfaceEntry(_ name: String, _ body: () -> Void) {
        container("e", "sa{sv}") {
            append(name)
            container("a", "{sv}", body)
        }
    }

    /// Writes one entry of an `a{sv}`.
    package func property(_ key: String, _ type: String, _ body: () -> Void) {
        container("e", "sv") {
            append(key)
            container("v", type, body)
        }
    }
}

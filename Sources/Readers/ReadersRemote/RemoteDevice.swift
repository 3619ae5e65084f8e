// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// A device with which this one is paired.
package struct RemoteDevice: Sendable, Equatable {
    /// SHA-256 of the certificate: 64 lower-case digits.
    package let fingerprint: String
    /// The name that the device has given itself.
    package var name: String

    package init(fingerprint: String, name: String) {
        self.fingerprint = fingerprint
        self.name = name
    }
}

/// The name is cleaned by the reader, because the writer may be taken over.
extension RemoteDevice: MessageField {
    package func write(to writer: inout MessageWriter) { writer.append(fields: [fingerprint, name]) }

    package init(from reader: inout MessageReader) throws(Malformed) {
        let fingerprint: String = try reader.read()
        guard Hex.decode(fingerprint, limit: 32)?.count == 32 else { throw Malformed("a fingerprint") }
        self.init(fingerprint: fingerprint, name: DeviceName.clean(try reader.read()))
    }
}

/// Names that other devices choose for themselves.
package enum DeviceName {
    package static let maximumCount = 33

    /// Cuts a name and replaces characters that could disturb a terminal or a log.
    package static func clean(_ name: String) -> String {
        let scalars = name.unicodeScalars.prefix(maximumCount).map { isPlain($0) ? $0 : "?" }
        var clean = ""
        clean.unicodeScalars.append(contentsOf: scalars)
        return clean.isEmpty ? "?" : clean
    }

    static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
        default: true
        }
    }
}

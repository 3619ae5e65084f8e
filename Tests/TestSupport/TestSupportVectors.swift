// SPDX-License-Identifier: GPL-3.0-or-later
package import Foundation
import Synchronization
package import Text

/// The folder `Tests` of the sources.
package let testsFolder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()

/// The files of Tests/Vectors that were read.
private let files = Mutex<[String: JSON]>([:])

/// Reads a file of Tests/Vectors, once.
package func vectorFile(_ name: String) throws -> JSON {
    if let known = files.withLock({ $0[name] }) { return known }
    let vectors = try JSON([UInt8](Data(contentsOf: testsFolder.appending(path: "Vectors/\(name)"))))
    files.withLock { $0[name] = vectors }
    return vectors
}

/// Reads a file of Tests/Vectors into values of a type.
package func vectors<Content: Decodable>(_ name: String, as type: Content.Type) throws -> Content {
    try JSONDecoder().decode(type, from: Data(contentsOf: testsFolder.appending(path: "Vectors/\(name)")))
}

/// A vector has no member with this name and form.
package struct MissingVector: Error {
    package let key: String
}

extension JSON {
    /// The bytes of a string of hexadecimal digits.
    package func bytes(_ key: String) throws(MissingVector) -> [UInt8] {
        guard let bytes = self[key]?.string.flatMap({ Hex.decode($0) }) else { throw MissingVector(key: key) }
        return bytes
    }

    package func object(_ key: String) throws(MissingVector) -> JSON {
        guard let value = self[key] else { throw MissingVector(key: key) }
        return value
    }
}

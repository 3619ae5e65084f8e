// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
import Text

/// The identifier of a registered user, as the login server has issued it.
package struct MPinID: Sendable, Equatable {
    /// The maximum length in bytes.
    package static let maximumCount = 4096

    /// Hexadecimal, spelled as it was issued: the login server looks it up as text.
    package let text: String
    let octets: [UInt8]

    /// Reads hexadecimal; nil for anything else.
    package init?(_ text: String) {
        guard let octets = Hex.decode(text, limit: Self.maximumCount), !octets.isEmpty else { return nil }
        self.text = text
        self.octets = octets
    }

    private init(_ text: String, _ octets: [UInt8]) { (self.text, self.octets) = (text, octets) }

    /// The identifier of a user who has a public key: its points belong to the identifier and the key together.
    func with(publicKey: [UInt8]) -> MPinID { MPinID(text, octets + publicKey) }

    package func digest() throws(CryptoError) -> [UInt8] { try DigestAlgorithm.sha256.hash(octets) }

    /// The point A of the identifier.
    func point() throws(CryptoError) -> Point { try Point.hash(try digest()) }

    /// The point of the identifier for one day.
    func point(of day: PermitDay) throws(CryptoError) -> Point {
        let bytes = withUnsafeBytes(of: day.number.bigEndian) { Array($0) }
        return try Point.hash(try DigestAlgorithm.sha256.hash(bytes + (try digest())))
    }
}

/// A day of time permits: the number of whole days since 1970-01-01 UTC.
package struct PermitDay: Sendable, Hashable {
    package let number: UInt32

    package init(_ number: UInt32) { self.number = number }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// The bytes of hexadecimal digits; white space is skipped. Digits that are wrong give no bytes, so that a comparison
/// with them fails.
package func hex(_ digits: String) -> [UInt8] { Hex.decode(digits.filter { !$0.isWhitespace }) ?? [] }

/// Upper-case hexadecimal digits.
package func hex(_ bytes: some Collection<UInt8>) -> String { Hex.encode(bytes).uppercased() }

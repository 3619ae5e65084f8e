// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// Returns the bytes of hexadecimal digits and skips white space. Invalid digits give an empty array, so a comparison
/// with the result fails.
package func hex(_ digits: String) -> [UInt8] { Hex.decode(digits.filter { !$0.isWhitespace }) ?? [] }

/// Returns the bytes as upper-case hexadecimal digits.
package func hex(_ bytes: some Collection<UInt8>) -> String { Hex.encode(bytes).uppercased() }

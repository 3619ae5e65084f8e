// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// The bytes of a secret, for comparison.
package func bytes(_ secret: borrowing Secret) -> [UInt8] { secret.withBytes { Array($0) } }

/// The bytes of a value, for comparison; the box is empty afterwards.
package func bytes(_ box: SecretBox?) -> [UInt8]? {
    guard let box, let secret = box.take() else { return nil }
    return bytes(secret)
}

package func box(_ text: String) -> SecretBox { SecretBox(Secret(text.utf8)) }

// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
import Text

/// The key of a handshake, which shows that the server speaks WebSocket. RFC 6455, 1.3.
package enum WebSocketKey {
    /// The value of `Sec-WebSocket-Accept` for the base 64 of a key.
    package static func accept(_ key: String) throws(CryptoError) -> String {
        Base64.standard.encode(
            try DigestAlgorithm.sha1.hash(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))
        )
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// `[wallet]` and `[mpin]`
extension Configuration {
    static let walletKeys: Configuration.KeyTable = [
        "card_authorities": .form(\.cardAuthorities, ConfigurationValue.cardAuthorities),
        "cards": .list(\.pinnedCards, ConfigurationValue.compressedKeys),
        "node": .optional(\.node.address, ConfigurationValue.webAddress),
        "chain_id": .form(\.node.chainID, ConfigurationValue.chainID),
        "node_ca": .path(\.node.authorityFile),
        "http_callbacks": .bool(\.node.allowsHTTPCallbacks),
    ]

    static let mpinKeys: Configuration.KeyTable = [
        "private_servers": .bool(\.allowsPrivateMPinServers),
        "trusted_domains": .form(\.trustedDomains, ConfigurationValue.list),
    ]
}

extension ConfigurationValue {
    /// The keys of authorities; nil for the word `vendor`.
    fileprivate func cardAuthorities() throws(StartError) -> [[UInt8]?] {
        if text == "none" { return [] }
        var keys: [[UInt8]?] = []
        for word in words {
            let key = Self.compressedKey(word)
            guard key != nil || word == "vendor" else {
                throw refuse("none, or a comma-separated list of vendor and compressed keys (66 hexadecimal digits)")
            }
            keys.append(key)
        }
        return keys
    }

    /// The address of a server on the web. Whether it can be used is checked later.
    fileprivate func webAddress() throws(StartError) -> String {
        guard text.hasPrefix("https://") || text.hasPrefix("http://") else { throw refuse("https://HOST") }
        return text
    }

    /// The hash that names a chain.
    fileprivate func chainID() throws(StartError) -> [UInt8] {
        guard let id = Hex.decode(text, limit: 32), id.count == 32 else { throw refuse("64 hexadecimal digits") }
        return id
    }
}

/// The node of the chain for which wallet cards sign: `[wallet]`.
package struct NodeConfiguration: Sendable, Equatable {
    /// `node`; nil: there is no node.
    package var address: String?
    /// `chain_id`: 32 bytes; the main net of EOS, which is called Vaulta now.
    package var chainID = Hex.decode("aca376f206b8fc25a6ed44dbdc66547c36c6c33e3a119ffbeaef943642f0e906") ?? []
    /// `node_ca`: a file with the only authorities that may certify the node; nil: those of the system.
    package var authorityFile: String?
    /// `http_callbacks`: whether callbacks may use http on this computer.
    package var allowsHTTPCallbacks = false
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// How credentials on cards and phones are read: `[credentials]`.
package struct CredentialConfiguration: Sendable, Equatable {
    /// An issuer of card certificates.
    package struct Issuer: Sendable, Equatable {
        /// 16 letters A to Z or digits.
        package let name: String
        /// A compressed point (33 bytes), or the object 7F49 with an RSA key.
        package let key: [UInt8]
    }

    /// `site`: the site identifier that the readers send to cards; 16 bytes.
    package var site = [UInt8](repeating: 0, count: 16)
    /// `location`: the location identifier that the readers send to cards; 16 bytes.
    package var location = [UInt8](repeating: 0, count: 16)
    /// `issuers`
    package var issuers: [Issuer] = []
    /// `validated`: whether only a key with a valid certificate is a credential.
    package var isValidated = false
    /// `aliro_key`: the file with the private key of the readers; nil: cards with Aliro are not read.
    package var aliroKey: String?
    /// `aliro_group`: the group of the readers; 16 bytes.
    package var aliroGroup: [UInt8]?
    /// `aliro_subgroup`: the subgroup of the readers; 16 bytes.
    package var aliroSubgroup = [UInt8](repeating: 0, count: 16)
    /// `aliro_credentials`: the compressed keys that are accepted in validated mode.
    package var aliroCredentials: [[UInt8]] = []
    /// `aliro_fast`: whether cards that were read before may use the fast phase.
    package var allowsFastAliro = true
    /// `allow_list`: the file with the listed credentials; nil: there is no list.
    package var allowList: String?
    /// `allow_list_watch`: whether the list is read again when a file is renamed onto it.
    package var watchesAllowList = false
    /// `site_key`: the file with the key of the site, for lists with pseudonyms.
    package var siteKey: String?
    /// `panel_readers`: the readers at which a door panel may choose what cards with PKOC sign.
    package var panelReaders: [String] = []

    static let table: Configuration.KeyTable = [
        "site": .form(\.credentials.site, ConfigurationValue.identifier),
        "location": .form(\.credentials.location, ConfigurationValue.identifier),
        "issuers": .list(\.credentials.issuers, ConfigurationValue.issuers),
        "validated": .bool(\.credentials.isValidated),
        "aliro_key": .path(\.credentials.aliroKey),
        "aliro_group": .optional(\.credentials.aliroGroup, ConfigurationValue.identifier),
        "aliro_subgroup": .form(\.credentials.aliroSubgroup, ConfigurationValue.identifier),
        "aliro_credentials": .list(\.credentials.aliroCredentials, ConfigurationValue.compressedKeys),
        "allow_list": .path(\.credentials.allowList),
        "allow_list_watch": .bool(\.credentials.watchesAllowList),
        "site_key": .path(\.credentials.siteKey),
        "aliro_fast": .bool(\.credentials.allowsFastAliro),
        "panel_readers": .list(\.credentials.panelReaders, ConfigurationValue.list),
    ]
}

extension ConfigurationValue {
    /// 16 bytes: a UUID, or 32 hexadecimal digits.
    fileprivate func identifier() throws(StartError) -> [UInt8] {
        guard let bytes = UUIDText.decode(text) else { throw refuse("a UUID, or 32 hexadecimal digits") }
        return bytes
    }

    /// Issuers of card certificates, as NAME:KEY.
    fileprivate func issuers() throws(StartError) -> [CredentialConfiguration.Issuer] {
        var issuers: [CredentialConfiguration.Issuer] = []
        for word in words {
            let parts = word.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2, parts[0].utf8.count == 16,
                parts[0].utf8.allSatisfy({ (0x41...0x5A).contains($0) || (0x30...0x39).contains($0) }),
                let key = Self.compressedKey(parts[1]) ?? Self.keyObject(parts[1])
            else {
                throw refuse(
                    "a comma-separated list of NAME:KEY; a name has 16 letters A to Z or digits, a compressed key 66"
                        + " hexadecimal digits, and an RSA key is the object 7F49"
                )
            }
            issuers.append(.init(name: parts[0], key: key))
        }
        return issuers
    }

    /// Compressed keys of credentials or cards.
    func compressedKeys() throws(StartError) -> [[UInt8]] {
        let keys = words.compactMap(Self.compressedKey)
        guard keys.count == words.count else {
            throw refuse("a comma-separated list of compressed keys (66 hexadecimal digits)")
        }
        return keys
    }

    /// The object 7F49 with an RSA key of at most 4096 bits.
    private static func keyObject(_ word: String) -> [UInt8]? {
        guard let key = Hex.decode(word, limit: 600), key.starts(with: [0x7F, 0x49]) else { return nil }
        return key
    }
}

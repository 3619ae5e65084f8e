// SPDX-License-Identifier: GPL-3.0-or-later
package import Credentials
package import Text

/// A credential that may open doors: a key and the sites that accept it.
package struct DoorCredential: Sendable {
    /// How clients name the key.
    package let id: String
    package let key: any CredentialKey
    package let sites: [DoorSite]
    /// When the credential was last changed, in seconds since 1970. Readers receive this time.
    package let lastUpdate: UInt32

    package init(id: String, key: any CredentialKey, sites: [DoorSite], lastUpdate: UInt32) {
        (self.id, self.key, self.sites, self.lastUpdate) = (id, key, sites, lastUpdate)
    }
}

/// Supplies the credentials of a user.
package protocol CredentialProvider: Sendable {
    /// Returns the active credentials of this user that open PKOC readers; with `keyID` only the one with this
    /// identifier.
    /// - Throws: `Failure` if the store cannot be read.
    func credentials(uid: UInt32, keyID: String?) async throws(Failure) -> [DoorCredential]

    /// Records that this key was used at a reader.
    func used(uid: UInt32, keyID: String) async
}

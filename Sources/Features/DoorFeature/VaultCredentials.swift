// SPDX-License-Identifier: GPL-3.0-or-later
package import DoorOpening
import Host
package import Text
package import Vault

/// Supplies the keys of the vault as credentials for door readers.
package struct VaultCredentials: CredentialProvider {
    private let vault: Vault

    package init(_ vault: Vault) { self.vault = vault }

    package func credentials(uid: UInt32, keyID: String?) async throws(Failure) -> [DoorCredential] {
        let usable = try await vault.usableKeys(of: uid)
        var credentials: [DoorCredential] = []
        for item in usable where keyID == nil || item.record.id == keyID {
            credentials.append(
                DoorCredential(
                    id: item.record.id,
                    key: item.key,
                    sites: try item.record.sites.map(site),
                    lastUpdate: UInt32(clamping: item.record.beginDate ?? 0)
                )
            )
        }
        return credentials
    }

    private func site(_ site: Site) throws(Failure) -> DoorSite {
        let door = try? DoorSite(
            identifier: site.id,
            siteKey: site.publicKey,
            issuerKey: site.issuerKey,
            locations: Set(site.readers),
            isLegacy: site.isLegacy,
            revocations: site.revocations
        )
        guard let door else {
            throw Failure(.recordDamaged, "a site of the key is damaged", advice: "import it again with IMPORT_SITE")
        }
        return door
    }

    package func used(uid: UInt32, keyID: String) async {
        // The opening is over, so a failure of the store does not change its result.
        await Failure.logged(
            "the use of a key for doors is not counted",
            of: try await vault.used(keyID, isModified: false, of: uid)
        )
    }
}

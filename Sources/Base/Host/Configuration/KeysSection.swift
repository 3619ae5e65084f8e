// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// The keys for doors and their issuer: `[keys]`.
package struct KeysConfiguration: Sendable, Equatable {
    /// `issuer`: a folder or an address; nil: there is none.
    package var issuer: String?
    /// `issuer_keys`: fingerprints of the keys of trusted issuers.
    package var fingerprints: [[UInt8]] = []
    /// `issuer_ca`: a file with the only authorities that may certify the server; nil: those of the system.
    package var authorityFile: String?
    /// `tpm`: whether keys are made in a TPM.
    package var tpm = TPMUse.auto
    /// `tpm_device`: a device, or a Unix socket that takes the commands of a TPM.
    package var tpmDevice = "/dev/tpmrm0"

    /// Whether keys are made in a TPM.
    package enum TPMUse: String, Sendable, CaseIterable {
        /// If there is one.
        case auto
        /// Always; without a TPM there are no new keys.
        case yes
        /// Never; a TPM is not opened.
        case no
    }

    static let table: Configuration.KeyTable = [
        "issuer": .optional(\.keys.issuer, ConfigurationValue.issuer),
        "issuer_keys": .list(\.keys.fingerprints, ConfigurationValue.fingerprints),
        "issuer_ca": .path(\.keys.authorityFile),
        "tpm": .word(\.keys.tpm),
        "tpm_device": .path(\.keys.tpmDevice),
    ]
}

extension ConfigurationValue {
    /// Where enrolment files come from. Whether it can be used is checked later.
    fileprivate func issuer() throws(StartError) -> String {
        guard ["/", "https://", "http://"].contains(where: text.hasPrefix) else {
            throw refuse("a folder, https://HOST/PATH")
        }
        return text
    }

    /// Fingerprints of keys, SHA-256.
    fileprivate func fingerprints() throws(StartError) -> [[UInt8]] {
        let fingerprints = words.compactMap { Hex.decode($0, limit: 32) }.filter { $0.count == 32 }
        guard fingerprints.count == words.count else {
            throw refuse("a comma-separated list of fingerprints (64 hexadecimal digits)")
        }
        return fingerprints
    }
}

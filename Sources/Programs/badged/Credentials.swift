// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import Crypto
import EID
import Host
import Taps
import Text
import Vault

extension PKOCSite {
    /// Makes the site of `[credentials]`.
    /// - Throws: `StartError` for an issuer whose key cannot be read.
    static func read(_ configuration: Configuration) throws(StartError) -> PKOCSite {
        var issuers: [PKOCIssuer] = []
        for entry in configuration.credentials.issuers {
            guard let key = PKOCIssuer.Key(entry.key),
                let issuer = PKOCIssuer(reference: Array(entry.name.utf8), key: key)
            else {
                throw .inConfiguration(
                    "[credentials] issuers: the key of \(entry.name) is neither a point of P-256 nor an RSA key",
                    of: "[credentials] issuers",
                    hint: "copy the public key of the issuer: 66 hexadecimal digits, or the object 7F49 for RSA"
                )
            }
            issuers.append(issuer)
        }
        return PKOCSite(
            site: configuration.credentials.site,
            location: configuration.credentials.location,
            issuers: issuers,
            isValidated: configuration.credentials.isValidated
        )
    }
}

extension AliroSite {
    /// The maximum number of bytes of a file with a private key.
    private static let maximumKeyFile = 1024

    /// Makes the site of `[credentials]`; nil: cards with Aliro are not read.
    /// - Throws: `StartError` if the key cannot be read, or if a part is missing. A fault never switches Aliro off
    ///   without an error.
    static func read(
        _ configuration: Configuration,
        environment: @escaping Environment = systemEnvironment
    ) throws(StartError) -> AliroSite? {
        let credentials = configuration.credentials
        guard let path = credentials.aliroKey else {
            guard credentials.aliroGroup == nil, credentials.aliroCredentials.isEmpty else {
                throw .inConfiguration(
                    "[credentials] aliro_key is missing, and there are settings of Aliro",
                    of: "[credentials] \(credentials.aliroGroup == nil ? "aliro_credentials" : "aliro_group")",
                    hint:
                        "name the file with the private key of the readers in aliro_key, or remove aliro_group and aliro_credentials"
                )
            }
            return nil
        }
        guard let group = credentials.aliroGroup else {
            throw .inConfiguration(
                "[credentials] aliro_key is set, and aliro_group is missing",
                of: "[credentials] aliro_key",
                hint: "name the group of the readers: a UUID, or 32 hexadecimal digits"
            )
        }
        var known: [ECPublicKey] = []
        for point in credentials.aliroCredentials {
            guard let key = try? ECPublicKey(compressedPoint: point, on: .secp256r1) else {
                throw .inConfiguration(
                    "[credentials] aliro_credentials has a key that is not a point of P-256",
                    of: "[credentials] aliro_credentials",
                    hint: "copy the public key of the credential: 66 hexadecimal digits"
                )
            }
            known.append(key)
        }
        let content = try SecretFile.read(path, limit: maximumKeyFile, setting: "[credentials] aliro_key", environment)
        guard let key = try? ECPrivateKey(pkcs8: content), key.group.curve == .secp256r1 else {
            throw .inConfiguration(
                "[credentials] aliro_key: \(path) is not a private key of P-256",
                of: "[credentials] aliro_key",
                hint: "the form is PKCS#8 in DER without encryption; see badged.conf(5)"
            )
        }
        return AliroSite(
            key: key,
            group: group,
            subgroup: credentials.aliroSubgroup,
            credentials: known,
            isValidated: credentials.isValidated,
            allowsFast: credentials.allowsFastAliro
        )
    }
}

extension SiteKey {
    /// Reads the file of `[credentials] site_key`; nil without that line.
    /// - Throws: `StartError` if the key cannot be read.
    static func read(
        _ configuration: Configuration,
        environment: @escaping Environment = systemEnvironment
    ) throws(StartError) -> SiteKey? {
        guard let path = configuration.credentials.siteKey else { return nil }
        let content = try SecretFile.read(path, limit: count, setting: "[credentials] site_key", environment)
        guard let key = SiteKey(content) else {
            throw .inConfiguration(
                "[credentials] site_key: \(path) has not \(count) bytes",
                of: "[credentials] site_key",
                hint: "make one for the site: head -c \(count) /dev/urandom > FILE"
            )
        }
        return key
    }
}

extension Configuration {
    /// The day for which certificates are checked: that of `[eid] date`, or today.
    var certificateDay: @Sendable () -> CVDate {
        guard let date, let day = CVDate(year: date.year, month: date.month, day: date.day) else {
            return { CVDate.today }
        }
        return { day }
    }
}

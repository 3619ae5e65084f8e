// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import EID
import Host
import PKOC

extension PKOCSite {
    /// Makes the site of `[credentials]`.
    /// - Throws: `StartError` for an issuer whose key cannot be read.
    static func read(_ settings: Settings) throws(StartError) -> PKOCSite {
        var issuers: [PKOCIssuer] = []
        for entry in settings.credentials.issuers {
            guard let key = PKOCIssuer.Key(entry.key),
                let issuer = PKOCIssuer(reference: Array(entry.name.utf8), key: key)
            else {
                throw .inConfiguration(
                    "[credentials] issuers: the key of \(entry.name) is neither a point of P-256 nor an RSA key",
                    hint: "copy the public key of the issuer: 66 hexadecimal digits, or the object 7F49 for RSA"
                )
            }
            issuers.append(issuer)
        }
        return PKOCSite(
            site: settings.credentials.site,
            location: settings.credentials.location,
            issuers: issuers,
            isValidated: settings.credentials.isValidated
        )
    }
}

extension Settings {
    /// The day for which certificates are checked: that of `[eid] date`, or today.
    var certificateDay: @Sendable () -> CVDate {
        guard let date, let day = CVDate(year: date.year, month: date.month, day: date.day) else {
            return { CVDate.today }
        }
        return { day }
    }
}

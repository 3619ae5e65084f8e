// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP
import Host
import KeyFeature
import TPM

extension Settings {
    /// The TPM of `[keys] tpm` and `tpm_device`; nil: none may be used.
    var tpm: TPM? { keys.tpm == .no ? nil : TPM(keys.tpmDevice, isRequired: keys.tpm == .yes) }
}

extension IssuerSettings {
    /// Reads `[keys]`. The proxies are those of `[eid] proxy`.
    static func read(_ settings: Settings, _ proxies: ProxySettings?) throws(StartError) -> IssuerSettings {
        var issuer = IssuerSettings()
        issuer.fingerprints = Set(settings.keys.fingerprints)
        issuer.proxies = proxies
        if let file = settings.keys.authorityFile { issuer.authorities = .file(file) }
        guard let text = settings.keys.issuer else { return issuer }
        guard !text.hasPrefix("/") else {
            issuer.place = .folder(text)
            return issuer
        }
        // Without TLS an eavesdropper would see which user has which key.
        guard let address = WebAddress(text), address.isSecure || IssuerSettings.isLoopback(address.origin.host),
            !address.text.contains("?")
        else {
            throw .inConfiguration(
                "[keys] issuer cannot be '\(text)'",
                hint: "allowed: a folder, https://HOST/PATH; http for this computer only"
            )
        }
        issuer.place = .web(address)
        return issuer
    }

    /// Whether a host is this computer.
    private static func isLoopback(_ host: String) -> Bool { ["localhost", "127.0.0.1", "::1"].contains(host) }
}

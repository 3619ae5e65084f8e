// SPDX-License-Identifier: GPL-3.0-or-later

/// The settings of this run: the command line overrides the configuration.
package struct Settings: Sendable, Equatable {
    package var limits: ServerLimits
    /// Number of virtual readers, 0 when off.
    package var virtualReaders: Int
    /// Path of the file with the trust point of their cards.
    package var virtualTrustPoint: String?
    /// Path of the folder with the trusted country authorities.
    package var trustAnchors: String
    package var proxy: ProxyChoice
    /// Path of the file with the name and the password for the proxy.
    package var proxyCredentials: String?
    /// The day for which certificates are checked; nil: today.
    package var date: Day?
    /// Compressed keys of the authorities of genuine Keycards; nil stands for the vendor.
    package var cardAuthorities: [[UInt8]?]
    /// Compressed identity keys of single Keycards.
    package var pinnedCards: [[UInt8]]
    package var node: NodeConfiguration
    /// The domains to which requests of M-Pin may go; empty: clients choose.
    package var trustedDomains: [String]
    package var credentials: CredentialConfiguration
    package var keys: KeysConfiguration
    package var isPCSCEnabled: Bool
    package var isNFCEnabled: Bool
    package var nfcDevices: [String]
    package var radio: RadioConfiguration
    package var remote: RemoteConfiguration
    package var logLevel: Log.Level

    package init(_ options: CommandLineOptions, _ configuration: Configuration) {
        limits = configuration.limits
        virtualReaders = options.isVirtual || configuration.isVirtualEnabled ? configuration.virtualReaders : 0
        (virtualTrustPoint, trustAnchors) = (configuration.virtualTrustPoint, configuration.trustAnchors)
        (proxy, proxyCredentials) = (configuration.proxy, configuration.proxyCredentials)
        date = configuration.date
        (cardAuthorities, pinnedCards) = (configuration.cardAuthorities, configuration.pinnedCards)
        node = configuration.node
        trustedDomains = configuration.trustedDomains
        credentials = configuration.credentials
        keys = configuration.keys
        isPCSCEnabled = configuration.isPCSCEnabled && !options.isWithoutPCSC
        isNFCEnabled = configuration.isNFCEnabled && !options.isWithoutNFC
        nfcDevices = configuration.nfcDevices
        (radio, remote) = (configuration.radio, configuration.remote)
        if options.isWithoutBLE { radio.isEnabled = false }
        logLevel = options.logLevel ?? configuration.logLevel
    }

    /// Reads the file of `[virtual] cvca`; nil without that line. The virtual cards check its content.
    package func readVirtualTrustPoint() throws(StartError) -> [UInt8]? {
        guard let path = virtualTrustPoint else { return nil }
        guard let bytes = try INIFile.contents(of: path) else {
            throw .inConfiguration("there is no file \(path)", hint: "correct [virtual] cvca in the configuration")
        }
        return bytes
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import CredentialFeature
import HTTP
import Host
import ISO7816
import KeyFeature
import MPin
import MdocFeature
import MobileDocument
import Scanners
import Store
import Taps
import Text
import Vault
import VirtualEID
import WalletFeature

/// The configuration, and what it leads to: files, and values that need more than their form to be right.
struct ConfiguredParts: Sendable {
    let configuration: Configuration
    /// The trust point of virtual cards; nil: the test authority that is built into them.
    let trustPoint: [UInt8]?
    let network: Network
    let antelope: AntelopeServices
    let mpin: MPinConfiguration
    let site: PKOCSite
    /// nil: cards with Aliro are not read.
    let aliro: AliroSite?
    let issuer: IssuerSettings
    let siteKey: SiteKey?
    /// The keys that sign requests for mobile documents, by name.
    let mdocIdentities: [String: DeviceRequest.Identity]
    /// The addresses of the lists about mobile documents that are fetched.
    let mdocLists: [WebAddress]
}

extension ConfiguredParts {
    /// - Throws: the first error.
    init(_ configuration: Configuration) throws(StartError) {
        var errors: [StartError] = []
        guard let parts = Self.read(configuration, &errors) else {
            throw errors.first ?? .inConfiguration("the configuration cannot be used", hint: "see badged.conf(5)")
        }
        self = parts
    }

    /// Reads all parts, and appends every error.
    /// - Returns: nil if there was one.
    static func read(_ configuration: Configuration, _ errors: inout [StartError]) -> ConfiguredParts? {
        defer { errors = errors.map { configuration.placed($0) } }
        // Only badged and root may change what badged trusts.
        let anchors = configuration.trustAnchors
        let state = systemEnvironment("STATE_DIRECTORY") ?? ""
        for (folder, setting) in [
            (anchors, "[eid] trust_anchors"), (anchors + "/test", "[eid] trust_anchors"),
            (configuration.documentAnchors, "[documents] anchors"), (configuration.mdocAnchors, "[mdoc] anchors"),
            (state, nil),
        ] {
            attempt(&errors, of: setting, try PlainFile.checkFolder(folder))
        }
        for (path, setting) in authorityFiles(configuration) {
            attempt(&errors, try PlainFile.check(path, of: setting))
        }
        let trustPoint = attempt(&errors, try configuration.readVirtualTrustPoint())
        let network = attempt(&errors, try Network.read(configuration)) ?? Network()
        let antelope = attempt(&errors, try AntelopeServices.read(configuration, network))
        let mpin = attempt(&errors, try MPinConfiguration.read(configuration, network))
        let site = attempt(&errors, try PKOCSite.read(configuration))
        let aliro = attempt(&errors, try AliroSite.read(configuration))
        let issuer = attempt(&errors, try IssuerSettings.read(configuration, network))
        let siteKey = attempt(&errors, try SiteKey.read(configuration))
        let identities = attempt(&errors, try DeviceRequest.Identity.read(configuration))
        let lists = attempt(&errors, try MdocListFetch.addresses(configuration))
        guard errors.isEmpty, let trustPoint, let antelope, let mpin, let site, let aliro, let issuer, let siteKey,
            let identities, let lists
        else {
            return nil
        }
        return ConfiguredParts(
            configuration: configuration,
            trustPoint: trustPoint,
            network: network,
            antelope: antelope,
            mpin: mpin,
            site: site,
            aliro: aliro,
            issuer: issuer,
            siteKey: siteKey,
            mdocIdentities: identities,
            mdocLists: lists
        )
    }

    /// What is wrong with paths that are used later, or may be put right while badged runs. Only `--check-config` tells it.
    static func pathErrors(_ configuration: Configuration, socket: String?) -> [StartError] {
        var errors: [StartError] = []
        for (folder, setting) in [
            (configuration.trustAnchors, "[eid] trust_anchors"), (configuration.documentAnchors, "[documents] anchors"),
            (configuration.mdocAnchors, "[mdoc] anchors"), (configuration.keys.issuer ?? "", "[keys] issuer"),
        ] where folder.hasPrefix("/") {
            attempt(&errors, try ConfiguredPath.checkFolder(folder, for: .read, of: setting))
        }
        if let path = socket {
            attempt(&errors, try ConfiguredPath.checkSocket(path, isMade: true, of: "--socket"))
        } else if let path = configuration.socketPath {
            attempt(&errors, try ConfiguredPath.checkSocket(path, isMade: true, of: "[server] socket"))
        }
        if configuration.keys.tpm != .no {
            let path = configuration.keys.tpmDevice
            attempt(&errors, try ConfiguredPath.checkDevice(path, .tpm, of: "[keys] tpm_device"))
        }
        for device in configuration.nfcDevices {
            // Such as `pn532_uart:/dev/ttyUSB0:115200`.
            let parts = device.split(separator: ":")
            guard parts.count > 1, parts[0].hasSuffix("_uart"), parts[1].hasPrefix("/") else { continue }
            attempt(&errors, try ConfiguredPath.checkDevice(String(parts[1]), .serial, of: "[nfc] devices"))
        }
        if let path = configuration.radio.replay {
            attempt(&errors, try checkCapture(path, of: "[ble] replay"))
        }
        for (path, setting) in authorityFiles(configuration) {
            attempt(&errors, try checkAuthorities(path, of: setting))
        }
        attempt(&errors, try checkTrustPoint(configuration))
        return errors.map { configuration.placed($0) }
    }

    /// The files with the authorities of TLS servers.
    private static func authorityFiles(_ configuration: Configuration) -> [(path: String, setting: String)] {
        [
            (configuration.node.authorityFile, "[wallet] node_ca"),
            (configuration.keys.authorityFile, "[keys] issuer_ca"),
        ].compactMap { path, setting in path.map { ($0, setting) } }
    }

    /// Refuses a file without certificates, or with one that is cut off.
    private static func checkAuthorities(_ path: String, of setting: String) throws(StartError) {
        let text: [UInt8]
        switch PlainFile.read(path, limit: 10_000_000) {
        case .bytes(let content): text = content
        case .tooLong: throw ConfiguredPath.refusal(path, "it is longer than 10 MB", of: setting)
        // This was told.
        case .missing, .failed: return
        }
        let objects = PEM.objects(in: text).filter { $0.label.hasSuffix("CERTIFICATE") }
        let isWhole = objects.allSatisfy { object in
            guard let der = object.der, let certificate = try? BERTLV(der), certificate.tag == 0x30 else {
                return false
            }
            return (try? certificate.children)?.map(\.tag) == [0x30, 0x30, 0x03]
        }
        guard objects.isEmpty || !isWhole else { return }
        throw .inConfiguration(
            objects.isEmpty ? "\(path) has no certificates in PEM" : "\(path) has a damaged certificate",
            of: setting,
            hint: "name a file with certificates in PEM in \(setting)"
        )
    }

    private static func checkTrustPoint(_ configuration: Configuration) throws(StartError) {
        guard let path = configuration.virtualTrustPoint, let bytes = try? configuration.readVirtualTrustPoint() else {
            return
        }
        do throws(Malformed) {
            _ = try VirtualEIDKind(trustPoint: bytes)
        } catch {
            let setting = "[virtual] cvca"
            throw .inConfiguration(
                "\(path) is no trust point: \(error.text)",
                of: setting,
                hint: "name a self-signed certificate of a CVCA, in DER, in \(setting)"
            )
        }
    }

    private static func checkCapture(_ path: String, of setting: String) throws(StartError) {
        try ConfiguredPath.checkFile(path, of: setting)
        do throws(ScannerFault) {
            try ReplayScanner.check(path)
        } catch {
            throw .inConfiguration("\(error.text)", of: setting, hint: "\(error.advice)")
        }
    }

    @discardableResult
    private static func attempt<Part>(
        _ errors: inout [StartError],
        of setting: String? = nil,
        _ part: @autoclosure () throws(StartError) -> Part
    ) -> Part? {
        do throws(StartError) {
            return try part()
        } catch {
            var error = error
            error.setting = error.setting ?? setting
            errors.append(error)
            return nil
        }
    }
}

extension Configuration {
    /// The TPM of `[keys] tpm` and `tpm_device`; nil: none may be used.
    var tpm: TPM? { keys.tpm == .no ? nil : TPM(keys.tpmDevice, isRequired: keys.tpm == .yes) }
}

extension IssuerSettings {
    /// Reads `[keys]`. The proxies are those of `[eid] proxy`.
    static func read(_ configuration: Configuration, _ network: Network) throws(StartError) -> IssuerSettings {
        var issuer = IssuerSettings()
        issuer.fingerprints = Set(configuration.keys.fingerprints)
        issuer.network = network
        if let file = configuration.keys.authorityFile { issuer.authorities = .file(file) }
        guard let text = configuration.keys.issuer else { return issuer }
        guard !text.hasPrefix("/") else {
            issuer.place = .folder(text)
            return issuer
        }
        // Without TLS an eavesdropper would see which user has which key.
        guard let address = WebAddress(text), address.isConfidential, !address.text.contains("?") else {
            throw .inConfiguration(
                "[keys] issuer cannot be '\(ConfigurationValue.shown(text))'",
                of: "[keys] issuer",
                hint: "allowed: a folder, https://HOST/PATH; http for this computer only"
            )
        }
        issuer.place = .web(address)
        return issuer
    }
}

extension MdocListFetch {
    /// The most lists that badged fetches.
    private nonisolated static let maximumLists = 32

    /// Reads `[mdoc] lists`.
    nonisolated static func addresses(_ configuration: Configuration) throws(StartError) -> [WebAddress] {
        let setting = "[mdoc] lists"
        var addresses: [WebAddress] = []
        for text in configuration.mdocLists {
            guard let address = WebAddress(text), address.isConfidential, !addresses.contains(address) else {
                throw .inConfiguration(
                    "\(setting) cannot have '\(ConfigurationValue.shown(text))'",
                    of: setting,
                    hint: "allowed: a comma-separated list of https://HOST/PATH, each once; http for this computer only"
                )
            }
            addresses.append(address)
        }
        guard addresses.count <= maximumLists else {
            throw .inConfiguration(
                "\(setting) has more than \(maximumLists) addresses",
                of: setting,
                hint: "fetch the others with a program of your own: badgectl mdoc anchors import FILE"
            )
        }
        return addresses
    }
}

extension MPinConfiguration {
    /// What the daemon uses for M-Pin servers.
    static func read(_ configuration: Configuration, _ network: Network) throws(StartError) -> MPinConfiguration {
        var mpin = MPinConfiguration(userAgent: "badged/\(Version.current)")
        mpin.network = network
        mpin.allowsPrivateServers = configuration.allowsPrivateMPinServers
        for domain in configuration.trustedDomains where !mpin.domains.add(domain) {
            throw .inConfiguration(
                "[mpin] trusted_domains has '\(domain)'",
                of: "[mpin] trusted_domains",
                hint: "allowed: a comma-separated list of host names such as example.org"
            )
        }
        return mpin
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import HTTP
import Host
import Keycard
import Store
import Text
import WalletFeature

extension StateStore {
    /// The store in the state folder of the service.
    init(_ tpm: TPM?, environment: @escaping Environment = systemEnvironment) {
        let folder = environment("STATE_DIRECTORY").flatMap { $0.isEmpty ? nil : $0 }
        self.init(
            exists: { folder.map(Store.exists) ?? false },
            failed: { failure in Log.error("cannot open the store: \(failure.logText)") }
        ) { () async throws(Failure) in
            guard let folder else { return nil }
            return try await Store.open(
                folder: folder,
                credentials: environment("CREDENTIALS_DIRECTORY"),
                tpm: tpm
            )
        }
    }
}

extension Configuration {
    /// The Keycards that are genuine: `[wallet] card_authorities` and `cards`.
    var keycardTrust: KeycardTrust {
        KeycardTrust(
            authorities: Set(cardAuthorities.map { $0 ?? KeycardTrust.vendor }),
            pinnedCards: Set(pinnedCards)
        )
    }
}

extension AntelopeServices {
    /// Reads `node`, `chain_id`, `node_ca` and `http_callbacks` of `[wallet]`. The proxies are those of `[eid] proxy`.
    static func read(_ configuration: Configuration, _ network: Network) throws(StartError) -> AntelopeServices {
        let node = configuration.node
        var services = AntelopeServices(chain: ChainID(node.chainID) ?? .eos)
        services.network = network
        services.userAgent = "badged/\(Version.current)"
        services.allowsHTTPCallbacks = node.allowsHTTPCallbacks
        if let file = node.authorityFile { services.nodeAuthorities = .file(file) }
        guard let text = node.address else { return services }
        // Without TLS an attacker in the network could change what badged shows the user.
        guard let address = WebAddress(text), address.isConfidential, !address.text.contains("?") else {
            throw .inConfiguration(
                "[wallet] node cannot be '\(ConfigurationValue.shown(text))'",
                of: "[wallet] node",
                hint: "allowed: https://HOST or https://HOST:PORT; http for this computer only"
            )
        }
        services.node = address
        return services
    }
}

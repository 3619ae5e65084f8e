// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import Concurrency
package import Host
package import Keycard
package import Server
package import Store

/// Recognises wallet cards, and runs the workflows with them. docs/protocol/wallet.md.
@Loop package final class WalletFeature: CardFeature {
    package let cardKinds: [any CardKind]
    let services: KeycardServices
    let antelope: AntelopeServices
    /// The dapps that WALLET_INIT has named, by session.
    var dapps: [ObjectIdentifier: DApp] = [:]

    /// `store` keeps the pairings with 3.x cards, the wallets that were loaded, and the registered devices. `trust`
    /// says which cards are genuine. `antelope` names the chain and its node.
    package init(
        _ registry: ReaderRegistry,
        _ store: StateStore,
        trust: KeycardTrust = KeycardTrust(),
        antelope: AntelopeServices = AntelopeServices(),
        now: @escaping Now = { ContinuousClock.now }
    ) {
        services = KeycardServices(registry, store, trust, now: now)
        self.antelope = antelope
        cardKinds = [KeycardKind(services.pairings, trust: trust)]
    }

    package func health() async -> [HealthCheck] {
        do throws(StoreError) {
            // Without a service manager, badged may have no folder for a store.
            return try await services.store.opened() == nil ? [] : [HealthCheck("store", ok: true)]
        } catch {
            return [HealthCheck("store", ok: false, advice: "The store cannot be used: \(error.text)")]
        }
    }

    package var commands: [CommandSpec] {
        let run = CommandSpec("RUN_WALLET", permission: [.cards, .wallet]) { [self] session, command in
            runWallet(session, command)
        }
        return [run] + KeycardPrompt.commands + WordsPrompt.commands + RegisterDevicePrompt.commands
            + VerifyDataPrompt.commands + operationCommands
    }

    package func sessionEnded(_ session: Session) { dapps[ObjectIdentifier(session)] = nil }
}

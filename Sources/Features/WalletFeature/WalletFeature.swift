// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import Concurrency
package import Host
package import Keycard
package import Server
package import Store
import Text

/// Recognises wallet cards, and runs the workflows with them. docs/protocol/wallet.md.
@Loop package final class WalletFeature: CardFeature {
    package let cardKinds: [any CardKind]
    let services: KeycardServices
    let antelope: AntelopeServices
    /// The dapps that WALLET_INIT has named, by session.
    var dapps: [ObjectIdentifier: DApp] = [:]

    /// `store` keeps the pairings with 3.x cards, and the wallets that were loaded. `trust`
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

    /// The records of the store, for GET_HEALTH.
    package nonisolated static let recordKinds = [
        Bindings.recordKind, KeycardPairings.recordKind,
        RecordKind(KnownWallets.space, "known wallets", remedy: "restore the store from a backup"),
    ]

    package func health() async -> [HealthCheck] {
        let cards = services.otherVersions.map { reader, info in
            let advice: Phrase = "The Keycard in reader '\(reader)' \(Failure.otherVersionText(info))"
            return HealthCheck("wallet card", ok: false, advice: advice)
        }
        do throws(Failure) {
            // Without a service manager, badged may have no folder for a store.
            return try await services.store.opened() == nil ? cards : [HealthCheck("store", ok: true)] + cards
        } catch {
            return [HealthCheck("store", ok: false, advice: "The store cannot be used: \(error.message)")] + cards
        }
    }

    package var commands: [CommandSpec] {
        let run = CommandSpec(
            "RUN_WALLET",
            FlowInterruptedMessage.name,
            permission: [.cards, .wallet],
            isForIdle: true,
            refusal: { failure, _ in
                let context = WorkflowContext(id: nil, type: failure["workflow"]?.string)
                return Reply(FlowInterruptedMessage(context: context, failure: failure))
            },
            runWallet
        )
        return [run] + KeycardPrompt.commands + WordsPrompt.commands + PassphrasePrompt.commands
            + RegisterDevicePrompt.commands + VerifyDataPrompt.commands + operationCommands
    }

    package func sessionEnded(_ session: Session) { dapps[ObjectIdentifier(session)] = nil }
}

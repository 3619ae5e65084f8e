// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Server
import Store
import TestSupport
import Testing
import Text

@testable import WalletFeature

/// WALLET_INIT of a client that is disconnected before its answer.
@Suite("A dapp without a client", .timeLimit(.minutes(5))) @Loop struct EndedClientTests {
    private struct Watch {
        weak var session: Session?
    }

    @Test("the dapp of a client that has gone while the store was opened is forgotten")
    func ended() async throws {
        let (began, opened) = (OneShot<Void>(), OneShot<Void>())
        let store = StateStore { () async throws(Failure) -> Store? in
            began.fill(())
            await opened.value(whenCancelled: ())
            return nil
        }
        var made: WalletFeature?
        let server = try await TestServer(
            readers: 0,
            moreFeatures: { registry in
                let wallet = WalletFeature(registry, store)
                made = wallet
                return [wallet]
            }
        )
        let wallet = try #require(made)
        let client = try server.connect()
        await client.send(#"{"cmd":"WALLET_INIT","mode":"MYKEY","dappName":"shop","appKey":"key","UUID":"user"}"#)
        await began.value(whenCancelled: ())
        let watch = Watch(session: server.server.sessions.first { _ in true })
        await server.server.stop()
        opened.fill(())
        // The task of the command has the session until its end.
        while watch.session != nil, !Task.isCancelled { await Task.yield() }
        #expect(wallet.dapps.isEmpty)
        withExtendedLifetime(client) {}
    }
}

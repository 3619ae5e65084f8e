// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import ISO7816
import Keycard
import TestSupport
import Testing
import Text

@testable import VirtualKeycard

/// Each dialogue with each fault at each command. A fault uses no try, and the reported result matches the card.
@Suite("Faults at each command")
struct FaultMatrixTests {
    enum Dialogue: String, CaseIterable, Sendable {
        case initialize, pair, status, verify, changePIN, unblock, load, sign, export, unpair

        /// Whether the dialogue exists for this card.
        func exists(in model: CardModel) -> Bool {
            switch self {
            case .pair, .unpair: model.isPaired
            default: true
            }
        }
    }

    static let rows = CardModel.allCases.flatMap { model in
        Dialogue.allCases.filter { $0.exists(in: model) }.map { (model, $0) }
    }

    @Test("a fault costs no try, and success is reported only if it is true", arguments: rows)
    func matrix(model: CardModel, dialogue: Dialogue) async throws {
        var runs = 0
        for fault in CardFault.allCases {
            var index = 0
            while true {
                let (card, pairing) = try await prepare(model, dialogue)
                await card.insert((index, fault))
                let before = await card.state
                var report: String?
                do {
                    report = try await run(dialogue, card, pairing)
                } catch let error as KeycardError {
                    check(error, fault, "\(dialogue) \(fault) at \(index)")
                }
                let isOver = await card.count <= index
                let after = await card.state
                let place: Comment = "\(model.testDescription) \(dialogue), \(fault) at command \(index)"
                #expect(after.pinTries >= before.pinTries, place)
                let isPUKUntouched = after.pukTries == before.pukTries || dialogue == .initialize && after.pukTries == 5
                #expect(isPUKUntouched, place)
                #expect(after.checks - before.checks <= 1, place)
                if let report { #expect(report == "done", place) }
                if isOver {
                    #expect(report == "done", place)
                    break
                }
                try await recover(dialogue, card, pairing, place)
                runs += 1
                index += 1
            }
        }
        #expect(runs >= CardFault.allCases.count)
    }

    /// A removed card is reported as removed, so that the workflow begins again.
    private func check(_ error: KeycardError, _ fault: CardFault, _ place: String) {
        switch fault {
        case .removedBefore, .removedAfter: #expect(error == .card(.removed), "\(place)")
        case .garbled, .failure, .refused, .wrongMAC, .replayed: #expect(error != .card(.removed), "\(place)")
        }
    }

    private func prepare(
        _ model: CardModel,
        _ dialogue: Dialogue
    ) async throws -> (KeycardStage, PairingBox?) {
        switch dialogue {
        case .initialize: return (try KeycardStage(model), nil)
        case .pair: return (try await KeycardStage.ready(model, loaded: false).card, nil)
        case .load: return try await KeycardStage.ready(model, loaded: false)
        case .unblock:
            let (card, pairing) = try await KeycardStage.ready(model)
            let applet = try await card.open(pairing)
            for _ in 0..<3 { _ = try await applet.verifyPIN(Secret("000000".utf8)) }
            return (card, pairing)
        case .status, .verify, .changePIN, .sign, .export, .unpair: return try await KeycardStage.ready(model)
        }
    }

    /// Runs the dialogue once. Returns "done" if its result is what the card has, else what is wrong.
    private func run(_ dialogue: Dialogue, _ card: KeycardStage, _ pairing: PairingBox?) async throws -> String {
        func isDone(_ condition: Bool) -> String { condition ? "done" : "a wrong report" }
        switch dialogue {
        case .initialize:
            let applet = try await card.select()
            try await applet.initializeWithKnownSecrets()
            return isDone(await card.wasInitialized)
        case .pair:
            let applet = try await card.select()
            let pairing = PairingBox(try await applet.pair(secret: Secret(Known.pairingSecret)))
            // The proof of a pairing is a channel.
            _ = try await card.open(pairing)
            return "done"
        case .status:
            let applet = try await card.open(pairing)
            let status = try await applet.readStatus()
            let state = await card.state
            let expected = KeycardStatus(
                pinTries: state.pinTries,
                pukTries: state.pukTries,
                hasKey: state.keyUID != nil
            )
            return isDone(status == expected)
        case .verify:
            let applet = try await card.open(pairing)
            return isDone(try await applet.verifyPIN(Secret(Known.pin.utf8)) == .accepted)
        case .changePIN:
            let applet = try await verified(card, pairing)
            try await applet.changePIN(to: Secret(Known.newPIN.utf8))
            return await isDone(card.hasPIN(Known.newPIN))
        case .unblock:
            let applet = try await card.open(pairing)
            let verdict = try await applet.unblockPIN(puk: Secret(Known.puk.utf8), newPIN: Secret(Known.newPIN.utf8))
            let isNew = await card.hasPIN(Known.newPIN)
            return isDone(verdict == .accepted && isNew)
        case .load:
            let applet = try await verified(card, pairing)
            let uid = try await applet.loadWallet(try Known.mnemonic())
            return await isDone(card.keyUID == uid)
        case .sign:
            let applet = try await verified(card, pairing)
            let hash = [UInt8](repeating: 5, count: 32)
            let signature = try await applet.sign(hash, with: Known.path, expecting: try Known.publicKey())
            return isDone(try signature.signature.isValid(for: hash, by: try Known.publicKey()))
        case .export:
            let applet = try await verified(card, pairing)
            return isDone(try await applet.exportPublicKey(Known.path) == Known.publicKey())
        case .unpair:
            let applet = try await verified(card, pairing)
            try await applet.unpair(slot: try #require(pairing).pairing.slot)
            return await isDone(card.freeSlots == 5)
        }
    }

    private func verified(_ card: KeycardStage, _ pairing: PairingBox?) async throws -> KeycardApplet {
        let applet = try await card.open(pairing)
        guard try await applet.verifyPIN(Secret(Known.pin.utf8)) == .accepted else {
            throw KeycardError.malformed("the right PIN was refused")
        }
        return applet
    }

    /// The card is inserted again, without a fault. SELECT shows how far the first run came, and the card is usable.
    private func recover(
        _ dialogue: Dialogue,
        _ card: KeycardStage,
        _ pairing: PairingBox?,
        _ place: Comment
    ) async throws {
        await card.insert()
        let applet = try await card.select()
        let info = await applet.info
        #expect(await info.isInitialized == card.isInitialized, place)
        #expect(await info.keyUID == card.keyUID, place)
        switch dialogue {
        case .initialize:
            if !info.isInitialized {
                #expect(try await run(.initialize, card, nil) == "done", place)
            } else {
                #expect(await card.wasInitialized, place)
            }
        case .load:
            if info.keyUID == nil {
                #expect(try await run(.load, card, pairing) == "done", place)
            } else {
                let expected = try ExtendedPrivateKey(seed: try Known.mnemonic().seed()).keyUID
                #expect(info.keyUID == expected, place)
            }
        case .changePIN:
            let (old, new) = await (card.hasPIN(Known.pin), card.hasPIN(Known.newPIN))
            #expect(old || new, place)
        case .unblock:
            if await card.pinTries == 0 { #expect(try await run(.unblock, card, pairing) == "done", place) }
        case .unpair:
            if info.freeSlots == 4 { #expect(try await run(.unpair, card, pairing) == "done", place) }
        case .pair, .status, .verify, .sign, .export:
            #expect(try await run(dialogue, card, pairing) == "done", place)
        }
    }
}

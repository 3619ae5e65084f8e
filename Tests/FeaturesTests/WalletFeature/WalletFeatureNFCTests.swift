// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import NFCTestSupport
import ReadersVirtual
import ServerDoubles
import TestSupport
import Testing
import Text
import VirtualKeycard

/// Runs workflows and operations with a virtual Keycard on an emulated PN532, through real libnfc.
@Suite("Wallet cards on an NFC board", .timeLimit(.minutes(5)))
@Loop struct WalletNFCTests {
    private func card(_ description: String) throws -> VirtualCard {
        let kinds = VirtualCardKinds([VirtualKeycardKind()])
        return try kinds.describe(simulator: nil, card: try JSON(description.utf8)).makeCard()
    }

    @Test("a new card gets the keys of words and another PIN, and signs", arguments: generations)
    func workflows(version: String) async throws {
        let board = try EmulatedPN532()
        let bench = try await WalletBench(board: board)
        let new = try card(#"{"kind":"keycard","version":"\#(version)","initialised":false}"#)
        board.field.insert(.virtual(new))
        let user = try WalletUser(bench)
        user.typedWords = Array(repeating: "abandon", count: 11).joined(separator: " ") + " about"
        let address = JSON.string("0x9858EfFD232B4033E47d90003D41EC34EcaEda94")

        let device = try await user.run(
            #"{"cmd":"RUN_WALLET","workflow":"AUTHORIZE_DEVICE_WITH_MNEMONICS","userId":"u"}"#
        )
        #expect(device["msg"] == .string("FLOW_COMPLETE") && device.entity?["address"] == address, "\(device)")

        user.answers["ENTER_PIN"] = [#"{"cmd":"SET_PIN","value":"\#(WalletUser.newPIN)"}"#]
        user.answers["ENTER_NEW_PIN"] = [#"{"cmd":"SET_NEW_PIN","value":"\#(WalletUser.pin)"}"#]
        let change = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN","userId":"u"}"#)
        #expect(change["msg"] == .string("FLOW_COMPLETE"), "\(change)")

        user.answers["ENTER_PIN"] = [#"{"cmd":"SET_PIN","value":"\#(WalletUser.pin)"}"#]
        let signed = try await user.run(
            #"{"cmd":"RUN_WALLET","workflow":"ACTIVATE_USER","userId":"u","challenge":"Some data"}"#
        )
        #expect(signed["msg"] == .string("FLOW_COMPLETE") && signed.entity?["signer"] == address, "\(signed)")
        #expect(await new.keycardSecrets().pinTries == 3)
    }

    @Test("a transfer is signed and executed", arguments: generations)
    func transfer(version: String) async throws {
        let board = try EmulatedPN532()
        let bench = try await OperationBench(board: board)
        board.field.insert(.virtual(try card(OperationBench.card(version))))
        let user = try await OperationUser(bench)
        user.returnsCard = false
        let end = try await user.run(OperationBench.transfer())
        #expect(end.resultCode == 1, "\(end)")
        #expect(bench.node.state.executed.count == 1)
    }
}

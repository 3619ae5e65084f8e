// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import Document
import ISO7816
import TestSupport
import Testing
import Text

@Suite("Basic access control, worked example of ICAO 9303-11 D", .timeLimit(.minutes(5)))
struct BasicAccessControlTests {
    let example: NinetyThreeOhThree.BasicAccess

    init() throws { example = try #require(NinetyThreeOhThree.examples).basicAccessControl }

    private func keys() throws -> SessionKeys {
        try BasicAccessControl.keys(information: Secret(Array(example.information.utf8)))
    }

    private func terminal() throws -> BasicAccessControl.Terminal {
        try BasicAccessControl.Terminal(
            keys: try keys(),
            chipRandom: hex(example.chipRandom),
            random: hex(example.terminalRandom),
            ownKey: Secret(hex(example.terminalKey))
        )
    }

    @Test("the keys are derived from the machine readable zone, with the right parity")
    func derivation() throws {
        let keys = try keys()
        #expect(bytes(keys.encryption) == hex(example.encryptionKey))
        #expect(bytes(keys.authentication) == hex(example.authenticationKey))
        let session = try SessionKeys(
            sharedSecret: Secret(zip(hex(example.terminalKey), hex(example.chipKey)).map { $0 ^ $1 }),
            cipher: .tripleDES
        )
        #expect(bytes(session.encryption) == hex(example.sessionEncryptionKey))
        #expect(bytes(session.authentication) == hex(example.sessionAuthenticationKey))
    }

    @Test("the terminal sends the command of the example, and reads the file in its channel")
    func run() throws {
        let terminal = try terminal()
        #expect(try terminal.command() == hex(example.command))
        var messaging = try terminal.finish(hex(example.answer))
        for exchange in example.exchanges {
            let command = try #require(CommandAPDU(bytes: hex(exchange.command)))
            #expect(try hex(messaging.wrap(command).bytes) == exchange.protected)
            let answer = try #require(ResponseAPDU(bytes: hex(exchange.protectedAnswer)))
            #expect(try hex(messaging.unwrap(answer).bytes) == exchange.answer)
        }
    }

    @Test("the chip reads the command and the channel of the example")
    func chip() throws {
        let keys = try keys()
        let opened = try BasicAccessControl.open(hex(example.command), keys)
        guard let message = consume opened else { throw Unexpected("the MAC was refused") }
        #expect(bytes(message) == hex(example.terminalRandom) + hex(example.chipRandom) + hex(example.terminalKey))
        let answer = hex(example.chipRandom) + hex(example.terminalRandom) + hex(example.chipKey)
        #expect(try BasicAccessControl.seal(Secret(answer), keys) == hex(example.answer))
        var messaging = try BasicAccessControl.session(
            Secret(hex(example.terminalKey)),
            Secret(hex(example.chipKey)),
            chipRandom: hex(example.chipRandom),
            terminalRandom: hex(example.terminalRandom)
        )
        for exchange in example.exchanges {
            let command = try #require(CommandAPDU(bytes: hex(exchange.protected)))
            #expect(try hex(messaging.unwrap(command).bytes) == exchange.command)
            let answer = try #require(ResponseAPDU(bytes: hex(exchange.answer)))
            #expect(try hex(messaging.wrap(answer).bytes) == exchange.protectedAnswer)
        }
    }

    @Test("an answer with one wrong bit opens no channel")
    func forged() throws {
        let answer = hex(example.answer)
        for index in answer.indices {
            var forged = answer
            forged[index] ^= 0x10
            let terminal = try terminal()
            do {
                _ = try terminal.finish(forged)
                Issue.record("byte \(index) was not checked")
            } catch {
                #expect(error == .protocolViolation("BAC: the answer is forged"))
            }
        }
    }

    @Test("an answer of another run opens no channel, though its MAC is right")
    func replayed() throws {
        let keys = try keys()
        let other = try BasicAccessControl.seal(Secret([UInt8](repeating: 0, count: 32)), keys)
        do {
            _ = try terminal().finish(other)
            Issue.record("the answer was accepted")
        } catch let error as ChipError {
            #expect(error == .protocolViolation("BAC: the answer has other random numbers"))
        }
    }
}

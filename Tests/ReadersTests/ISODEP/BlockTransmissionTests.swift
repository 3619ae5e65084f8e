// SPDX-License-Identifier: GPL-3.0-or-later
import NFCTestSupport
import TestSupport
import Testing

@testable import NFCDevices

extension BlockError: Error {}

/// The reader's and the card's side of the block protocol, with a radio field between them that loses and damages frames.
@Suite("ISO/IEC 14443-4 blocks", .timeLimit(.minutes(5)))
struct BlockTransmissionTests {
    /// An activated card in a field, and the reader's side.
    private final class Pair {
        let field = RadioField()
        var transmission: BlockTransmission
        private(set) var steps = 0
        private(set) var longestFrame = 0

        init(_ card: PICC) throws {
            field.insert(card)
            switch card.technology {
            case .a:
                _ = try #require(field.select(.a))
                guard case .frame(let answer) = field.exchange(ATS.request()) else { throw BlockError.unresponsive }
                transmission = BlockTransmission(try ATS(answer).parameters)
            case .b:
                guard case .frame(let answer) = field.exchange(ATQB.wakeUp) else { throw BlockError.unresponsive }
                let atqb = try ATQB(answer)
                #expect(field.exchange(atqb.attrib()) == .frame([0x00]))
                transmission = BlockTransmission(atqb.parameters)
            }
        }

        func run(_ first: BlockTransmission.Step) -> Result<[UInt8], BlockError> {
            var step = first
            while true {
                steps += 1
                switch step {
                case .done(let answer): return .success(answer)
                case .failed(let error): return .failure(error)
                case .send(let frame, _):
                    longestFrame = max(longestFrame, frame.count)
                    switch field.exchange(frame) {
                    case .frame(let answer): step = transmission.receive(answer)
                    case .nothing, .damaged: step = transmission.receiveNothing()
                    }
                }
            }
        }

        func transmit(_ command: [UInt8]) -> Result<[UInt8], BlockError> { run(transmission.begin(command)) }
    }

    private static func echo(_ count: Int) -> (command: [UInt8], answer: [UInt8]) {
        let data = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let length = [UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)]
        return ([0x00, 0xC0, 0, 0, 0] + length + data, data + [0x90, 0x00])
    }

    @Test(
        "commands and answers of every length arrive complete, for every frame size and both types",
        arguments: [PICC.Technology.a, .b],
        [UInt8](0...8)
    )
    func lengths(technology: PICC.Technology, code: UInt8) throws {
        let card = PICC(technology, frameSizeCode: code, application: PICC.echo)
        let pair = try Pair(card)
        for count in [1, 2, 12, 13, 14, 253, 254, 255, 256, 1000, 30_000] {
            let (command, answer) = Self.echo(count)
            #expect(pair.transmit(command) == .success(answer), "\(count)")
        }
        // The frame size includes the CRC of 2 bytes.
        #expect(pair.longestFrame == [16, 24, 32, 40, 48, 64, 96, 128, 256][Int(code)] - 2)
    }

    @Test("the longest answer is accepted, one byte more is refused")
    func longest() throws {
        let whole = [UInt8](repeating: 0x11, count: 65_538)
        let pair = try Pair(PICC { $0[1] == 0 ? .answer(whole) : .answer(whole + [0]) })
        #expect(pair.transmit([0, 0]) == .success(whole))
        #expect(pair.transmit([0, 1]) == .failure(.answerTooLong))
        #expect(pair.transmit([0, 0]) == .failure(.answerTooLong), "no command works after an error")
    }

    /// The command and its answer have four blocks each: 7 exchanges after the activation.
    private static let faults: [RadioField.Fault] = [
        .commandLost, .answerLost, .answerDamaged, .garbage([]),
        .garbage([0xFF, 0xFF]), .garbage([UInt8](repeating: 0xA5, count: 254)), .garbage([0xE2]), .slow(1),
    ]

    @Test("one fault in any exchange is recovered, and the card executes the command once", arguments: faults, 1...7)
    func recovery(fault: RadioField.Fault, exchange: Int) throws {
        try recovers(fault, exchange)
    }

    @Test("a repeated block of the answer is recognised by its number", arguments: 5...7)
    func repeated(exchange: Int) throws { try recovers(.answerRepeated, exchange) }

    private func recovers(_ fault: RadioField.Fault, _ exchange: Int) throws {
        var card = PICC(frameSizeCode: 1, application: PICC.echo)
        card.blockSize = 17
        let pair = try Pair(card)
        let (command, answer) = Self.echo(66)
        pair.field.plan([exchange: fault])
        #expect(pair.transmit(command) == .success(answer))
        #expect(pair.field.card?.commands == 1)
        #expect(pair.field.faultsLeft == 0)
    }

    @Test("random faults, at most two in a row, lose no byte", arguments: 0..<200)
    func random(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let pair = try Pair(PICC(frameSizeCode: UInt8.random(in: 0...8, using: &random), application: PICC.echo))
        let some: [RadioField.Fault] = [.commandLost, .answerLost, .answerDamaged, .garbage([0x40])]
        var faults: [Int: RadioField.Fault] = [:]
        var index = 1
        while index < 2000 {
            for _ in 0..<Int.random(in: 1...2, using: &random) {
                faults[index] = some.randomElement(using: &random)
                index += 1
            }
            index += Int.random(in: 4...9, using: &random)
        }
        pair.field.plan(faults)
        let sizes = (1...8).map { _ in Int.random(in: 1...900, using: &random) }
        for size in sizes {
            let (command, answer) = Self.echo(size)
            #expect(pair.transmit(command) == .success(answer))
        }
        #expect(pair.field.card?.commands == sizes.count)
    }

    @Test("the exchange with a removed card ends after three retries")
    func gone() throws {
        let pair = try Pair(PICC(application: PICC.echo))
        pair.field.remove()
        #expect(pair.transmit([0, 0xC0, 0, 0, 1, 0]) == .failure(.unresponsive))
        #expect(pair.steps == 1 + BlockTransmission.maximumRetries + 1)
    }

    @Test(
        "the exchange with a hostile card ends after a bounded number of steps",
        arguments: RadioField.Attack.allCases,
        [1, 2, 40]
    )
    func hostile(attack: RadioField.Attack, from: Int) throws {
        let pair = try Pair(PICC(frameSizeCode: 0, application: PICC.echo))
        pair.field.plan([:], attack: (from, attack))
        let (command, _) = Self.echo(1000)
        guard case .failure(let error) = pair.transmit(command) else {
            throw Unexpected("the exchange with a hostile card succeeded")
        }
        #expect(pair.steps < 6_000)
        switch attack {
        case .extensionStorm: #expect(error == .waitsTooLong)
        // During the chain of the command these blocks are invalid.
        case .endlessChain, .emptyChain: #expect(error == .answerTooLong || error == .unresponsive)
        default: #expect(error == .unresponsive)
        }
    }

    @Test("an exchange with a card that is silent again and again ends with an error")
    func drip() {
        var transmission = BlockTransmission(
            CardParameters(frameSize: FrameSize(code: 8), waitingTime: .milliseconds(1), guardTime: .zero)
        )
        var step = transmission.begin([0, 0])
        for round in 0..<1_000 {
            guard case .send(let frame, _) = step else {
                #expect(step == .failed(.unresponsive) && round < 250)
                return
            }
            let number = frame[0] & 0x01
            step = transmission.receiveNothing()
            guard case .send = step else { continue }
            step = transmission.receive([0x12 | number, 0x55])
        }
        Issue.record("the exchange does not end")
    }

    @Test("each waiting time extension is granted with the multiplied time", arguments: [1, 7, 59])
    func waiting(multiplier: UInt8) throws {
        var transmission = BlockTransmission(
            CardParameters(frameSize: FrameSize(code: 8), waitingTime: .milliseconds(10), guardTime: .zero)
        )
        _ = transmission.begin([0, 0])
        for _ in 1...5 {
            let step = transmission.receive([0xF2, multiplier | 0xC0])
            let time = Duration.milliseconds(10) * Int(multiplier) + FrameWaitingTime.tolerance
            #expect(step == .send([0xF2, multiplier], within: time))
        }
        #expect(transmission.receive([0x02, 0x90, 0x00]) == .done([0x90, 0x00]))
    }

    @Test("a lost grant of a waiting time extension is repeated")
    func lostGrant() throws {
        var card = PICC(application: PICC.echo)
        card.extensions = 3
        for exchange in 1...4 {
            for fault in [RadioField.Fault.commandLost, .answerLost] {
                let pair = try Pair(card)
                pair.field.plan([exchange: fault])
                #expect(pair.transmit([0, 0xC0, 0, 0, 1, 7]) == .success([7, 0x90, 0x00]), "\(exchange) \(fault)")
                #expect(pair.field.card?.commands == 1)
            }
        }
    }

    @Test("a presence check does not affect the next command")
    func presence() throws {
        let pair = try Pair(PICC(application: PICC.echo))
        for count in [1, 300, 2] {
            #expect(pair.run(pair.transmission.beginPresenceCheck()) == .success([]))
            #expect(pair.run(pair.transmission.beginPresenceCheck()) == .success([]))
            let (command, answer) = Self.echo(count)
            #expect(pair.transmit(command) == .success(answer))
        }
        #expect(pair.field.card?.commands == 3)
        pair.field.remove()
        #expect(pair.run(pair.transmission.beginPresenceCheck()) == .failure(.unresponsive))
    }

    @Test("a deselected card answers no more blocks")
    func deselect() throws {
        let pair = try Pair(PICC(application: PICC.echo))
        #expect(pair.run(pair.transmission.beginDeselect()) == .success([]))
        #expect(pair.transmit([0, 0xC0, 0, 0, 1, 7]) == .failure(.unresponsive))
    }

    @Test("an empty command and a command during another one are refused")
    func order() {
        let parameters = CardParameters(frameSize: .maximum, waitingTime: .zero, guardTime: .zero)
        var transmission = BlockTransmission(parameters)
        #expect(transmission.begin([]) == .failed(.notReady))
        #expect(transmission.receive([0x02]) == .failed(.notReady))
        _ = transmission.begin([0])
        #expect(transmission.begin([0]) == .failed(.notReady))
        #expect(transmission.beginPresenceCheck() == .failed(.notReady))
        #expect(transmission.receive([0x02, 0x90, 0x00]) == .done([0x90, 0x00]))
    }
}

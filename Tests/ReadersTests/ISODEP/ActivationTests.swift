// SPDX-License-Identifier: GPL-3.0-or-later
import Testing
import Text

@testable import NFCDevices

@Suite("Activation of contactless cards", .timeLimit(.minutes(5)))
struct ActivationTests {
    private static func milliseconds(_ duration: Duration) -> Double {
        Double(duration.components.seconds) * 1000 + Double(duration.components.attoseconds) / 1e15
    }

    @Test("an ATS gives frame size, times and historical bytes")
    func ats() throws {
        let ats = try ATS([0x08, 0x78, 0x80, 0xA1, 0x02, 0x80, 0x31, 0xF8])
        #expect(ats.parameters.frameSize.bytes == 256)
        // FWI 10: 302 µs × 1024; SFGI 1: 604 µs.
        #expect(abs(Self.milliseconds(ats.parameters.waitingTime) - 309.3) < 0.1)
        #expect(abs(Self.milliseconds(ats.parameters.guardTime) - 0.604) < 0.001)
        #expect(ats.historicalBytes == [0x80, 0x31, 0xF8])
        let atr = ContactlessATR.typeA(historicalBytes: ats.historicalBytes)
        #expect(atr.dropLast() == [0x3B, 0x83, 0x80, 0x01, 0x80, 0x31, 0xF8])
        #expect(atr.dropFirst().reduce(0, ^) == 0)
    }

    @Test(
        "missing and reserved values in an ATS become the defaults",
        arguments: [
            ([0x01], 32, 4.83, 0), ([0x02, 0x05], 64, 4.83, 0), ([0x03, 0x25, 0x70], 64, 38.7, 0),
            ([0x03, 0x2F, 0xFF], 256, 4.83, 0.302), ([0x03, 0x10, 0x80], 16, 4.83, 0),
        ] as [([UInt8], Int, Double, Double)]
    )
    func defaults(bytes: [UInt8], frame: Int, wait: Double, pause: Double) throws {
        let parameters = try ATS(bytes).parameters
        #expect(parameters.frameSize.bytes == frame)
        #expect(abs(Self.milliseconds(parameters.waitingTime) - wait) < 0.1)
        #expect(abs(Self.milliseconds(parameters.guardTime) - pause) < 0.01)
    }

    @Test(
        "an ATS with a wrong length is refused",
        arguments: [[], [0x00], [0x02], [0x05, 0x78], [0x02, 0x70], [0x04, 0x70, 0, 0], [0xFF, 0x70]] as [[UInt8]]
    )
    func badATS(bytes: [UInt8]) {
        #expect(throws: Malformed.self) { try ATS(bytes) }
    }

    @Test("a short or extended ATQB gives the contents of ATTRIB and the ATR")
    func atqb() throws {
        let bytes: [UInt8] = [0x50, 1, 2, 3, 4, 0xA, 0xB, 0xC, 0xD, 0x77, 0x81, 0xA1]
        let atqb = try ATQB(bytes)
        #expect(atqb.hasBlockProtocol)
        #expect(atqb.parameters.frameSize.bytes == 256)
        #expect(abs(Self.milliseconds(atqb.parameters.waitingTime) - 309.3) < 0.1)
        #expect(atqb.parameters.guardTime == .zero)
        #expect(atqb.attrib() == [0x1D, 1, 2, 3, 4, 0x00, 0x08, 0x01, 0x00])
        let atr = ContactlessATR.typeB(atqb, bufferLength: 3)
        #expect(atr.dropLast() == [0x3B, 0x88, 0x80, 0x01, 0xA, 0xB, 0xC, 0xD, 0x77, 0x81, 0xA1, 0x30])
        #expect(atr.dropFirst().reduce(0, ^) == 0)
        let extended = try ATQB(bytes + [0x40])
        #expect(extended.attrib() == atqb.attrib())
        #expect(abs(Self.milliseconds(extended.parameters.guardTime) - 4.83) < 0.1)
    }

    @Test(
        "an ATQB of a wrong form is refused",
        arguments: [[], [0x50], [UInt8](repeating: 0x50, count: 11), [UInt8](repeating: 0x50, count: 14)]
            + [[0x51] + [UInt8](repeating: 0, count: 11)]
    )
    func badATQB(bytes: [UInt8]) {
        #expect(throws: Malformed.self) { try ATQB(bytes) }
    }

    @Test("a card without ISO/IEC 14443-4 and a card with another CID are recognised")
    func attribAnswer() throws {
        let other = try ATQB([0x50, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0x80, 0])
        #expect(!other.hasBlockProtocol)
        #expect(try ATQB.bufferLength([0x30]) == 3)
        #expect(throws: Malformed.self) { try ATQB.bufferLength([]) }
        #expect(throws: Malformed.self) { try ATQB.bufferLength([0x31]) }
    }

    @Test("an ATR has at most fifteen historical bytes")
    func longATR() {
        let atr = ContactlessATR.typeA(historicalBytes: [UInt8](repeating: 1, count: 40))
        #expect(atr.count == 4 + 15 + 1)
        #expect(atr[1] == 0x8F)
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Document
import TestSupport
import Testing

@Suite("Active authentication, worked example of ICAO 9303-11 F", .timeLimit(.minutes(5)))
struct ActiveAuthenticationTests {
    /// The example prints no modulus, so that it begins with the message representative.
    @Test("the message representative of the example is right, and nothing else")
    func representative() throws {
        let example = try #require(NinetyThreeOhThree.examples).activeAuthentication
        let (message, challenge) = (hex(example.representative), hex(example.challenge))
        #expect(try ActiveAuthentication.check(message: message, challenge) == .right)
        #expect(try ActiveAuthentication.check(message: message, challenge.reversed()) == .wrong)
        for index in message.indices {
            var changed = message
            changed[index] ^= 1
            #expect(try ActiveAuthentication.check(message: changed, challenge) == .wrong, "byte \(index)")
        }
        #expect(try ActiveAuthentication.check(message: [0x6A, 0x31, 0xCC], challenge) == .unsupported)
        #expect(try ActiveAuthentication.check(message: [], challenge) == .wrong)
    }
}

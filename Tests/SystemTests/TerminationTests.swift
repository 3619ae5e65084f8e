// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Foundation
import Glibc
import TestSupport
import Testing

extension RealServices {
    @Suite("the end of badged")
    struct TerminationTests {
        @Test("SIGTERM ends badged although a reader of pcscd never answers a command")
        func silentReader() async throws {
            let (commands, continuation) = AsyncStream.makeStream(of: Void.self)
            let isOver = DispatchSemaphore(value: 0)
            let reader = FakeReader("/run/fake-\(UUID())") { _ in
                continuation.yield()
                isOver.wait()
                isOver.signal()
                return .bytes([0x6F, 0x00])
            }
            PCSCD.cleanUp()
            let pcscd = try PCSCD([.fake("Fake Reader", path: reader.path)])
            reader.insert()
            let socket = "/tmp/badged-test-\(UUID()).sock"
            let badged = try RunningProgram("badged", ["--no-nfc", "--no-ble", "--socket", socket])
            // The first command recognises the card.
            for await _ in commands { break }
            #expect(await badged.exitCode(after: SIGTERM) == 0)
            #expect(access(socket, F_OK) != 0)
            // Only now the reader answers.
            isOver.signal()
            await pcscd.end()
        }
    }
}

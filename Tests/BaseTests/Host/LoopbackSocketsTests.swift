// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Testing

@Suite("The address of this computer") struct LoopbackSocketsTests {
    @Test(
        "localhost, 127.0.0.0/8 and ::1 are this computer",
        arguments: ["localhost", "LocalHost", "127.0.0.1", "127.255.0.9", "::1", "0:0:0:0:0:0:0:1"]
    )
    func own(host: String) { #expect(LoopbackSockets.areReached(by: host)) }

    @Test(
        "a name that looks so is another host",
        arguments: [
            "", "127.", "127.1", "127.example.org", "127.0.0.1.example.org", "127.0.0.1.", "127.0.0.256",
            "127.\u{661}.0.1", "localhost.example.org", "localhost.", "::2", "1::1", "[::1]", "::ffff:10.0.0.1",
            "128.0.0.1", "0.0.0.0",
        ]
    )
    func other(host: String) { #expect(!LoopbackSockets.areReached(by: host)) }
}

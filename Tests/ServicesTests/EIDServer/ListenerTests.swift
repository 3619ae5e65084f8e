// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Testing

@testable import EIDServer

@Suite(.timeLimit(.minutes(5))) struct ListenerTests {
    @Test("closing a listener twice does not close a later socket with the same number")
    func closedTwice() throws {
        for _ in 0..<50 {
            let listener = try Listener(port: 0, .silent)
            listener.close()
            let pairs = (0..<32).map { _ in
                var pair: [Int32] = [-1, -1]
                socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &pair)
                return pair
            }
            listener.close()
            for pair in pairs {
                var byte: UInt8 = 1
                #expect(send(pair[0], &byte, 1, Int32(MSG_NOSIGNAL)) == 1)
                for end in pair { Glibc.close(end) }
            }
        }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import RemoteIFD
import Transfers

/// A device on the other side of a link, whose events a test reads one after the other.
@Loop package final class LinkPeer {
    package nonisolated let events: AsyncStream<RemoteLink.Event>
    private let link: DeviceLink

    private init(_ identity: RemoteIdentity, _ security: LinkSecurity, _ times: RemoteLink.Times) {
        let (events, continuation) = AsyncStream.makeStream(of: RemoteLink.Event.self)
        self.events = events
        link = DeviceLink(identity, security, times) { event in
            continuation.yield(event)
            if case .ended = event { continuation.finish() }
        }
    }

    package static func connect(
        to address: RemoteAddress,
        interface: String? = nil,
        _ identity: RemoteIdentity,
        _ security: LinkSecurity,
        times: RemoteLink.Times
    ) -> LinkPeer {
        let peer = LinkPeer(identity, security, times)
        peer.link.connect(to: address, interface: interface)
        return peer
    }

    /// Serves an accepted connection.
    package static func serve(
        _ socket: Int32,
        _ identity: RemoteIdentity,
        _ security: LinkSecurity,
        times: RemoteLink.Times
    ) -> LinkPeer {
        let peer = LinkPeer(identity, security, times)
        peer.link.serve(socket)
        return peer
    }

    package func send(_ message: [UInt8]) { link.send(message) }

    package func close(_ code: UInt16 = 1000) { link.close(code) }
}

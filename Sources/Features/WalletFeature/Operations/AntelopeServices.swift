// SPDX-License-Identifier: GPL-3.0-or-later
package import Antelope
import Glibc
package import HTTP

/// The servers of the MYKEY operations: the node of the chain, and who may get callbacks.
package struct AntelopeServices: Sendable {
    /// The chain that the node must belong to.
    package var chain: ChainID
    /// nil: there is no node, and only WALLET_SIGN works.
    package var node: WebAddress?
    /// Who may issue the certificate of the node.
    package var nodeAuthorities = Authorities.system
    /// Who may issue the certificates of callbacks.
    package var callbackAuthorities = Authorities.system
    /// Whether callbacks may use http on this computer.
    package var allowsHTTPCallbacks = false
    package var limits = HTTPLimits(connect: Self.limit, transfer: Self.limit)
    package var network = Network()
    package var userAgent = "badged"
    /// Seconds since 1970.
    package var time: @Sendable () -> Int

    /// The deadline for one answer of a server.
    package static let limit = Duration.seconds(10)

    package init(
        chain: ChainID = .eos,
        node: WebAddress? = nil,
        time: @escaping @Sendable () -> Int = { Glibc.time(nil) }
    ) {
        self.chain = chain
        self.node = node
        self.time = time
    }
}

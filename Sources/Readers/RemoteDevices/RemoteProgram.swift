// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Drivers
package import Host
import ReadersRemote
import Text

/// What badged-remote does for badged, until badged closes the socket: it has the network of remote readers.
@Loop package final class RemoteProgram {
    private var channel: ProgramChannel?
    private lazy var report = BadgedSender { [weak self] in self?.channel?.send($0) }
    private lazy var lenders = Lenders(report)
    private lazy var borrowers = Borrowers(report)

    /// Takes the socket to badged. `onEnd` is called when badged has closed it, or has sent a message that is not as it
    /// must be.
    package init(socket: Int32, onEnd: @escaping @Loop () -> Void) throws(SystemError) {
        channel = try ProgramChannel(
            socket,
            .packets(maximum: DriverMessage.maximumSize),
            asking: "badged",
            nil,
            onMessage: { [weak self] in self?.handle($0) ?? false },
            onEnd: { _ in onEnd() }
        )
    }

    /// - Returns: whether the message was allowed.
    private func handle(_ message: [UInt8]) -> Bool {
        switch message.first ?? 0 {
        case ..<DriverMessage.firstReport:
            guard let request = DriverRequest(bytes: message) else { return false }
            lenders.handle(request)
        case ..<DriverMessage.firstOwn:
            guard let report = DriverReport(bytes: message) else { return false }
            borrowers.handle(report)
        default:
            guard let request = RemoteRequest(bytes: message) else { return false }
            return handle(request)
        }
        return true
    }

    private func handle(_ request: RemoteRequest) -> Bool {
        switch request {
        case .identity(let key, let certificate):
            guard let key = key.take(), let identity = try? RemoteIdentity(key: key, certificate: certificate) else {
                return false
            }
            lenders.identity = identity
            borrowers.identity = identity
        case .borrow(let settings, let devices): lenders.borrow(settings, devices)
        case .rest: lenders.rest()
        case .pair(let id, let fingerprint, let code): lenders.pair(id, fingerprint, code)
        case .stopPairing(let id): lenders.stopPairing(id)
        case .lend(let settings, let devices): borrowers.lend(settings, devices)
        case .openPairing(let code):
            guard let code = code.take() else { return false }
            borrowers.openPairing(code)
        case .closePairing: borrowers.closePairing()
        case .kept(let isKept): borrowers.kept(isKept)
        }
        return true
    }
}

/// Sends messages to badged.
@Loop struct BadgedSender {
    private let send: @Loop ([UInt8]) -> Void

    init(_ send: @escaping @Loop ([UInt8]) -> Void) { self.send = send }

    func callAsFunction(_ report: RemoteReport) { send(report.bytes) }
    /// About readers that devices lend.
    func callAsFunction(_ report: DriverReport) { send(report.bytes) }
    /// About shared readers.
    func callAsFunction(_ request: DriverRequest) { send(request.bytes) }
}

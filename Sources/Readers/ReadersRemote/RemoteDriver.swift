// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Drivers
package import Readers
import Text

/// badged's half of lending readers of this host, which knows the readers. `RemoteFeature` has it.
@Loop package protocol RemoteLending: AnyObject {
    /// Whether readers are lent.
    var isLending: Bool { get }
    /// badged-remote has started.
    func began()
    /// badged-remote has ended, or did not answer.
    func ended(_ ending: ProgramChannel.Ending)
    /// - Returns: whether the message was allowed.
    func handle(_ report: RemoteReport) -> Bool
    /// Handles a request about a reader of this host.
    func handle(_ request: DriverRequest)
}

/// The program badged-remote, which both halves of remote readers share.
///
/// It has the network: announcements, TLS, WebSockets and the messages of devices. Here are the pairings, the own key, and
/// what a user is told.
@Loop package final class RemoteDriver: Driver {
    package nonisolated let name = "remote"
    package nonisolated let program = "badged-remote"
    package nonisolated let socket: String?
    package nonisolated let heartbeat: Heartbeat.Times
    package nonisolated let isAlwaysAsked = true
    private weak var client: DriverClient?
    private var identity: RemoteIdentity?
    weak var lenders: RemoteLenders?
    package weak var lending: (any RemoteLending)?

    /// - Parameters:
    ///   - socket: the socket at which systemd starts the program; nil: badged starts it itself.
    ///   - heartbeat: the times of the questions whether the program lives.
    package nonisolated init(socket: String? = nil, heartbeat: Heartbeat.Times = Heartbeat.Times()) {
        self.socket = socket
        self.heartbeat = heartbeat
    }

    package var isNeeded: Bool { lenders?.isBorrowing == true || lending?.isLending == true }

    var isRunning: Bool { client?.isRunning ?? false }

    /// The process of the program, if it is a child of this one.
    package var process: Int32? { client?.process }

    package func start(_ client: DriverClient) {
        self.client = client
        lenders?.start()
    }

    package func stop() {}

    package func began() {
        sendIdentity()
        lenders?.began()
        lending?.began()
    }

    package func ended(_ ending: ProgramChannel.Ending) {
        lenders?.ended()
        lending?.ended(ending)
    }

    package func handle(_ message: [UInt8]) -> Bool {
        guard let kind = message.first, kind >= RemoteMessage.firstReport else {
            guard let request = DriverRequest(bytes: message), let lending else { return false }
            lending.handle(request)
            return true
        }
        guard let report = RemoteReport(bytes: message) else { return false }
        switch report {
        case .lenders, .paired: return lenders?.handle(report) ?? false
        case .lending, .guest, .knowsCode, .wrongCodes: return lending?.handle(report) ?? false
        }
    }

    /// A reader has the fingerprint of its device in its name. So the program cannot pose as a reader of this host.
    package func admitted(_ reader: ReaderDescription) -> ReaderDescription? {
        guard lenders?.owns(readerNamed: reader.name) == true, reader.name.unicodeScalars.allSatisfy(DeviceName.isPlain)
        else { return nil }
        var reader = reader
        reader.isRemote = true
        return reader
    }

    // MARK: For both halves

    /// Starts or ends the program as needed.
    package func update() { client?.look() }

    /// Sends a message, if the program runs.
    package func send(_ request: RemoteRequest) { client?.send(request.bytes) }

    package func send(_ report: DriverReport) { client?.send(report.bytes) }

    /// Gives the program the key of this host.
    package func introduce(_ identity: RemoteIdentity) {
        guard self.identity !== identity else { return }
        self.identity = identity
        sendIdentity()
    }

    private func sendIdentity() {
        guard let identity, let key = try? identity.encodedKey() else { return }
        send(.identity(key: SecretBox(key), certificate: identity.encodedCertificate))
    }
}

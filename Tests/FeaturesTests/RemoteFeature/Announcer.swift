// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import RemoteDevices
import TestSupport

/// An unpaired device that announces itself and closes each connection.
@Loop final class Announcer {
    private let sender: PortSocket
    private let server: PortSocket
    private var alarm: Loop.Alarm?
    private(set) var closed = 0
    private let changes = Changes()

    /// Announces the fingerprint again and again to a port of the loopback interface.
    init(_ fingerprint: String, name: String, to port: UInt16) throws {
        sender = try PortSocket(.datagrams, port: 0, interface: "lo")
        server = try PortSocket(.connections, port: 0, interface: "lo")
        try server.whenReady { [weak self] in
            while let self, let (socket, _) = server.accept() {
                close(socket)
                closed += 1
                changes.notify()
            }
        }
        let offer = Announcer.offer(fingerprint, name, server.port)
        let alarm = Loop.Alarm { [weak self] in
            self?.sender.send(offer, to: RemoteAddress(host: .loopback, port: port))
            self?.alarm?.set(after: 5)
        }
        self.alarm = alarm
        alarm.set(after: 0)
    }

    static func offer(_ fingerprint: String, _ name: String, _ port: UInt16, isPairing: Bool = false) -> [UInt8] {
        let text =
            #"{"msg":"REMOTE_IFD","IFDName":"\#(name)","IFDID":"\#(fingerprint)","port":\#(port),"#
            + #""SupportedAPI":["IFDInterface_WebSocket_v2"],"pairing":\#(isPairing)}"#
        return Array(text.utf8)
    }

    /// Waits until so many connections were closed.
    func closes(_ count: Int) async { await changes.wait { closed >= count } }

    func stop() { alarm?.cancel() }
}

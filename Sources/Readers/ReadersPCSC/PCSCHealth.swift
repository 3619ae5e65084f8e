// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import Readers
import Text

/// Why pcscd cannot be reached.
enum PCSCFault: Error, Sendable, Equatable {
    /// There is no socket: pcscd is not installed, or neither pcscd nor pcscd.socket has been started.
    case noSocket
    /// There is a socket and no process listens, for example after pcscd was killed.
    case refused
    /// The socket is not accessible, or pcscd hangs up before its first message, as when polkit refuses access.
    case denied
    /// pcscd and libpcsclite are of different releases and have different versions of their protocol.
    case versionMismatch
    /// pcscd hung up during a message, for example because it is being stopped.
    case hungUp
    /// The system refuses this process a thread, a descriptor or an inotify instance.
    case noResources
    /// A process listens and does not answer.
    case silent
    /// pcscd hangs up, and has as many connections as it takes.
    case full(connections: Int)
    case other(PCSCCode)

    /// Finds the fault.
    /// - Parameters:
    ///   - code: of SCardEstablishContext.
    ///   - errno: of a connect to the socket; 0 when it succeeds.
    init(_ code: PCSCCode, errno: Int32) {
        switch (code, errno) {
        case (.noService, ENOENT), (.noService, ENOTDIR): self = .noSocket
        case (.noService, EACCES), (.noService, EPERM), (.securityViolation, _): self = .denied
        // pcscd hung up before the first message was sent.
        case (.noService, 0): self = .hungUp
        case (.noService, _): self = .refused
        case (.serviceStopped, _): self = .versionMismatch
        case (.commError, _): self = .hungUp
        default: self = .other(code)
        }
    }

    /// The connections that pcscd takes, unless it is started with --max-thread.
    private static let places = 200

    /// The fault in the light of the number of connections: pcscd hangs up also when it has no place left.
    func with(connections: Int) -> PCSCFault {
        switch self {
        case .denied, .hungUp: connections >= Self.places ? .full(connections: connections) : self
        case .noSocket, .refused, .versionMismatch, .noResources, .silent, .full, .other: self
        }
    }

    /// Whether the fault may pass without an event of the socket.
    var mayPass: Bool { if case .full = self { true } else { false } }
}

/// The health checks of pcscd.
struct PCSCHealth: Sendable, Equatable {
    /// nil while connected.
    var fault: PCSCFault?
    /// pcscd accepts the connection and refuses cards; polkit action access_card.
    var refusesCards = false

    func checks(path: String, user: UInt32 = getuid()) -> [HealthCheck] {
        let polkit: Phrase =
            "allow org.debian.pcsc-lite.access_pcsc and org.debian.pcsc-lite.access_card to user id \(user) with a rule in "
            + "/etc/polkit-1/rules.d, then restart this service"
        let access = { (advice: Phrase) in
            [HealthCheck("pcscd", ok: true), HealthCheck("pcscdAccess", ok: false, advice: advice)]
        }
        switch fault {
        case nil where refusesCards:
            return access("pcscd denies access to the cards: \(polkit)")
        case nil:
            return [HealthCheck("pcscd", ok: true), HealthCheck("pcscdAccess", ok: true)]
        // polkit refuses nothing to root.
        case .denied where user == 0:
            return failed(
                "pcscd at \(path) closes each connection: its places may be taken by other programs (200, or its option "
                    + "--max-thread), or it fails; 'ss -xp' shows the programs, 'journalctl -u pcscd' the reason"
            )
        case .denied:
            return access("pcscd denies access (\(path)): \(polkit)")
        case .silent:
            return failed(
                "pcscd at \(path) does not answer: restart it with 'systemctl restart pcscd'; if that happens again, see "
                    + "'journalctl -u pcscd' for the driver that hangs"
            )
        case .full(let connections):
            return failed(
                "pcscd has no place left, because \(connections) connections are open at \(path): end programs that keep "
                    + "them ('ss -xp' shows them), or start pcscd with --max-thread"
            )
        case .noSocket:
            return failed(
                "there is no pcscd (\(path) does not exist): install pcscd and start it with "
                    + "'systemctl enable --now pcscd.socket'"
            )
        case .refused:
            return failed(
                "no process listens at \(path): restart pcscd with 'systemctl restart pcscd.socket pcscd'; in a "
                    + "container mount the folder of the socket, not the socket"
            )
        case .versionMismatch:
            return failed(
                "pcscd speaks another protocol version than libpcsclite: bring both to the same release and restart "
                    + "pcscd; in a container use the release of the host"
            )
        case .hungUp:
            return failed("pcscd at \(path) closed the connection: see 'journalctl -u pcscd', then restart it")
        case .noResources:
            return failed(
                "pcscd cannot be watched: no thread, file descriptor or inotify instance is left for user id \(user); "
                    + "end other programs of this user, or raise the limits of this service, then restart it"
            )
        case .other(let code):
            return failed("pcscd at \(path) answered \(code.hex): see 'journalctl -u pcscd', then restart it")
        }
    }

    private func failed(_ advice: Phrase) -> [HealthCheck] { [HealthCheck("pcscd", ok: false, advice: advice)] }
}

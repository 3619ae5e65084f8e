// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Synchronization

/// The ports of the server. All serve the same paths; their TLS settings differ.
package enum ListenerName: String, Sendable, CaseIterable {
    /// The settings of a correct eService.
    case web
    /// The settings of a correct eID-Server: RSA-PSK.
    case psk
    case webEC = "web-ec"
    case webUnlisted = "web-unlisted"
    case webExpired = "web-expired"
    case webWrongHost = "web-wronghost"
    case webWeak = "web-weak"
    case webTLS11 = "web-tls11"
    case webTLS13 = "web-tls13"
    /// Only key agreement with RSA.
    case webCiphers = "web-ciphers"
    /// TLS sessions cannot be resumed.
    case webNoResume = "web-noresume"
    /// Another origin for redirects.
    case webOther = "web-other"
    case pskUnlisted = "psk-unlisted"
    case pskExpired = "psk-expired"
    case pskFuture = "psk-future"
    case pskWrongHost = "psk-wronghost"
    case pskWeak = "psk-weak"
    case pskTLS11 = "psk-tls11"
    case pskTLS13 = "psk-tls13"
    /// DHE-PSK instead of RSA-PSK.
    case pskCiphers = "psk-ciphers"
    /// No PSK at all.
    case pskNoPSK = "psk-nopsk"
    /// HTTP without TLS.
    case plain
    /// Accepts connections and sends nothing.
    case silent

    /// The TLS settings; nil for a listener without TLS.
    var profile: TLSProfile? {
        switch self {
        case .web, .webOther: TLSProfile(certificate: .web, alternative: .webEC)
        case .webEC: TLSProfile(certificate: .webEC)
        case .webUnlisted: TLSProfile(certificate: .unlisted)
        case .webExpired: TLSProfile(certificate: .expired)
        case .webWrongHost: TLSProfile(certificate: .wrongHost)
        case .webWeak: TLSProfile(certificate: .weak, securityLevel: 0)
        case .webTLS11: TLSProfile(certificate: .web, minimum: .v1_1, maximum: .v1_1, securityLevel: 0)
        case .webTLS13: TLSProfile(certificate: .web, maximum: .v1_3)
        case .webCiphers: TLSProfile(certificate: .web, ciphers: "AES128-GCM-SHA256:AES256-SHA256")
        case .webNoResume: TLSProfile(certificate: .web, resumes: false)
        case .psk: Self.psk(.psk)
        case .pskUnlisted: Self.psk(.unlisted)
        case .pskExpired: Self.psk(.expired)
        case .pskFuture: Self.psk(.future)
        case .pskWrongHost: Self.psk(.wrongHost)
        case .pskWeak: Self.psk(.weak) { $0.securityLevel = 0 }
        case .pskTLS11: Self.psk(.psk) { ($0.minimum, $0.maximum, $0.securityLevel) = (.v1_1, .v1_1, 0) }
        case .pskTLS13: Self.psk(.psk) { $0.maximum = .v1_3 }
        case .pskCiphers: Self.psk(.psk) { $0.ciphers = "DHE-PSK-AES256-GCM-SHA384:DHE-PSK-AES128-CBC-SHA256" }
        case .pskNoPSK: TLSProfile(certificate: .psk)
        case .plain, .silent: nil
        }
    }

    private static func psk(
        _ certificate: CertificateName,
        _ change: (inout TLSProfile) -> Void = { _ in }
    ) -> TLSProfile {
        var profile = TLSProfile(certificate: certificate, ciphers: TLSProfile.pskCiphers, usesPSK: true)
        change(&profile)
        return profile
    }
}

/// Opens each port when it is needed for the first time.
final class Listeners: Sendable {
    typealias Handler = @Sendable (HTTPRequest, Handshake, ListenerName) -> HTTPResponse

    struct Callbacks: Sendable {
        let handle: Handler
        let key: TLSContext.KeyLookup
    }

    private let certificates: TLSCertificates
    private let callbacks: Callbacks
    private let open = Mutex<[ListenerName: Listener]>([:])
    private let reserved = Mutex<(socket: Int32, port: UInt16)?>(nil)

    init(_ certificates: TLSCertificates, _ callbacks: Callbacks) {
        (self.certificates, self.callbacks) = (certificates, callbacks)
    }

    func port(_ name: ListenerName) throws(TLSError) -> UInt16 {
        try open.withLock { listeners throws(TLSError) in
            if let listener = listeners[name] { return listener.port }
            let listener = try Listener(try service(name))
            listeners[name] = listener
            return listener.port
        }
    }

    /// Reserves a port at which nothing listens.
    func refusingPort() throws(TLSError) -> UInt16 {
        try reserved.withLock { reserved throws(TLSError) in
            if let reserved { return reserved.port }
            let bound = try BoundSocket()
            reserved = (bound.descriptor, bound.port)
            return bound.port
        }
    }

    func close() {
        open.withLock { listeners in
            for listener in listeners.values { listener.close() }
        }
        reserved.withLock { reserved in
            if let reserved { Glibc.close(reserved.socket) }
            reserved = nil
        }
    }

    private func service(_ name: ListenerName) throws(TLSError) -> Listener.Service {
        guard let profile = name.profile else { return name == .silent ? .silent : .plain }
        let context = try TLSContext(profile, certificates, keys: callbacks.key)
        let callbacks = callbacks
        return .tls(context) { callbacks.handle($0, $1, name) }
    }
}

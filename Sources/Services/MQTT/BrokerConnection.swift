// SPDX-License-Identifier: GPL-3.0-or-later
import CMosquitto
import Glibc
package import Host
import Secrets
import Text

/// One connection to the broker, over libmosquitto without its threads. A new connection is a new object.
///
/// The threads of the library end for good after one failed check of a certificate, and it waits without jitter. So only
/// its calls for one step are used; the caller waits with poll(2). It connects, publishes, pings and disconnects, and
/// never subscribes. One thread at a time uses it: that of `connect`, and then that of the publisher.
package final class BrokerConnection: @unchecked Sendable {
    package enum Event {
        /// CONNACK: the number of messages that may be unacknowledged, or why the broker refuses.
        case connected(window: Int)
        case refused(String)
        /// PUBACK, with its reason.
        case acknowledged(Int32, reason: Int32)
        /// The broker has sent a PUBLISH, which it must not.
        case message
    }

    package struct Will {
        let topic: String
        let payload: [UInt8]
    }

    /// What a PUBLISH came to.
    package enum Sent {
        case sent(Int32)
        case tooLarge
        case failed
    }

    package static let window = 20
    /// Bytes of a file with a password.
    private static let maximumPassword = 4096

    private let handle: OpaquePointer
    private let isFive: Bool
    private var events: [Event] = []

    /// Makes the library ready; once for the process.
    package static func start() { mosquitto_lib_init() }

    /// - Throws: `StartError` in words for the log if the settings cannot be used now, such as a file that is missing.
    package init(_ configuration: MQTTConfiguration, clientID: String, will: Will?) throws(StartError) {
        guard let handle = mosquitto_new(clientID, true, nil) else {
            throw StartError("cannot make a connection: \(errorText())", hint: "free some memory")
        }
        self.handle = handle
        isFive = configuration.version == .five
        mosquitto_user_data_set(handle, Unmanaged.passUnretained(self).toOpaque())
        _ = mosquitto_int_option(handle, MOSQ_OPT_PROTOCOL_VERSION, isFive ? MQTT_PROTOCOL_V5 : MQTT_PROTOCOL_V311)
        _ = mosquitto_int_option(handle, MOSQ_OPT_SEND_MAXIMUM, Int32(Self.window))
        _ = mosquitto_int_option(handle, MOSQ_OPT_TCP_NODELAY, 1)
        _ = mosquitto_max_inflight_messages_set(handle, UInt32(Self.window))
        if let user = configuration.user {
            let password = try configuration.passwordFile.map { path throws(StartError) in
                let setting = "[broker] password_file"
                let content = try SecretFile.read(path, limit: Self.maximumPassword, setting: setting)
                guard content.count <= Self.maximumPassword else {
                    throw StartError.inConfiguration("\(path) is too long for a password", hint: "correct \(setting)")
                }
                // libmosquitto takes and keeps the first line as a C string.
                return content.withBytes { bytes in
                    String(decoding: bytes.prefix { $0 != 0x0A && $0 != 0x0D }, as: UTF8.self)
                }
            }
            try check(mosquitto_username_pw_set(handle, user, password), "the password")
        }
        if configuration.usesTLS {
            let (file, folder): (String?, String?) =
                configuration.authorityFile.map { ($0, nil) } ?? (nil, "/etc/ssl/certs")
            // Without this function OpenSSL would ask for a passphrase at the terminal.
            let noPassphrase:
                @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32 = {
                    _,
                    _,
                    _,
                    _ in 0
                }
            try check(
                mosquitto_tls_set(
                    handle,
                    file,
                    folder,
                    configuration.certificateFile,
                    configuration.keyFile,
                    noPassphrase
                ),
                "the certificates"
            )
            // SSL_VERIFY_PEER. The default of the library allows TLS 1.1.
            try check(mosquitto_tls_opts_set(handle, 1, "tlsv1.2", nil), "TLS")
        }
        if let will {
            let code = will.payload.withUnsafeBytes {
                mosquitto_will_set_v5(handle, will.topic, Int32($0.count), $0.baseAddress, 1, true, nil)
            }
            try check(code, "the will")
        }
        setCallbacks()
    }

    deinit { mosquitto_destroy(handle) }

    private func check(_ code: Int32, _ what: String) throws(StartError) {
        guard code != MOSQ_ERR_SUCCESS.rawValue else { return }
        throw StartError("\(what) cannot be used: \(Self.text(code))", hint: "see the log of badged-mqtt")
    }

    private static func text(_ code: Int32) -> String {
        if code == MOSQ_ERR_ERRNO.rawValue { return errorText() }
        return String(cString: mosquitto_strerror(code))
    }

    private static func connection(_ context: UnsafeMutableRawPointer?) -> BrokerConnection? {
        context.map { Unmanaged<BrokerConnection>.fromOpaque($0).takeUnretainedValue() }
    }

    private func setCallbacks() {
        mosquitto_connect_v5_callback_set(handle) { _, context, code, _, properties in
            guard let self = BrokerConnection.connection(context) else { return }
            guard code == 0 else {
                let text = self.isFive ? mosquitto_reason_string(code) : mosquitto_connack_string(code)
                self.events.append(.refused(text.map { String(cString: $0) } ?? "reason \(code)"))
                return
            }
            var maximum: UInt16 = UInt16(BrokerConnection.window)
            if mosquitto_property_read_int16(properties, Int32(MQTT_PROP_RECEIVE_MAXIMUM.rawValue), &maximum, false)
                == nil
            {
                maximum = UInt16(BrokerConnection.window)
            }
            self.events.append(.connected(window: max(1, min(Int(maximum), BrokerConnection.window))))
        }
        mosquitto_publish_v5_callback_set(handle) { _, context, id, reason, _ in
            BrokerConnection.connection(context)?.events.append(.acknowledged(id, reason: reason))
        }
        mosquitto_message_v5_callback_set(handle) { _, context, _, _ in
            BrokerConnection.connection(context)?.events.append(.message)
        }
    }

    // MARK: Steps

    /// Connects; this may block for the look-up of the name and for TCP.
    /// - Returns: why it has failed.
    package func connect(to host: String, port: Int, keepAlive: Int) -> String? {
        errno = 0
        let code = mosquitto_connect_bind_v5(handle, host, Int32(port), Int32(keepAlive), nil, nil)
        return code == MOSQ_ERR_SUCCESS.rawValue ? nil : Self.text(code)
    }

    /// The descriptor to wait for; negative without a connection.
    package var descriptor: Int32 { mosquitto_socket(handle) }

    package var wantsWrite: Bool { mosquitto_want_write(handle) }

    /// Does what is possible without waiting.
    /// - Returns: the events, and why the connection has ended.
    package func step(canRead: Bool, canWrite: Bool) -> (events: [Event], ending: String?) {
        var code = MOSQ_ERR_SUCCESS.rawValue
        errno = 0
        if canRead { code = mosquitto_loop_read(handle, 100) }
        if code == MOSQ_ERR_SUCCESS.rawValue, canWrite || wantsWrite { code = mosquitto_loop_write(handle, 100) }
        if code == MOSQ_ERR_SUCCESS.rawValue { code = mosquitto_loop_misc(handle) }
        defer { events = [] }
        return (events, code == MOSQ_ERR_SUCCESS.rawValue ? nil : Self.text(code))
    }

    /// Publishes with QoS 1. `expiry` in seconds, only with version 5.
    package func publish(_ topic: String, _ payload: [UInt8], retain: Bool, expiry: Int? = nil) -> Sent {
        var properties: OpaquePointer?
        if isFive, let expiry {
            _ = mosquitto_property_add_int32(
                &properties,
                Int32(MQTT_PROP_MESSAGE_EXPIRY_INTERVAL.rawValue),
                UInt32(expiry)
            )
        }
        defer { mosquitto_property_free_all(&properties) }
        var id: Int32 = 0
        let code = payload.withUnsafeBytes {
            mosquitto_publish_v5(handle, &id, topic, Int32($0.count), $0.baseAddress, 1, retain, properties)
        }
        switch code {
        case MOSQ_ERR_SUCCESS.rawValue: return .sent(id)
        case MOSQ_ERR_OVERSIZE_PACKET.rawValue, MOSQ_ERR_PAYLOAD_SIZE.rawValue: return .tooLarge
        default: return .failed
        }
    }

    package func disconnect() {
        _ = mosquitto_disconnect_v5(handle, 0, nil)
        _ = mosquitto_loop_write(handle, 100)
    }
}

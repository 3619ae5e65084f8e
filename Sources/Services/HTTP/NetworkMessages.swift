// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Text

// badged and one run of badged-network talk over a stream socket. Each message follows its length in four bytes. The
// requests of badged are in the order in which they are carried out: badged-network runs one transfer at a time, and ends
// it when another message arrives.

/// A message from badged to badged-network.
package enum NetworkRequest: Sendable {
    /// Make a session, whose connections later transfers use again.
    case open(session: UInt8, TLSTrust)
    /// Run a transfer and report its result.
    case transfer(Transfer)
    /// End the running transfer.
    case stop
    /// Listen on a port of this computer, and pass the sockets. No other message follows.
    case listen(port: UInt16)
    /// Ask the eID client that has a port of this computer to show itself, and send its name. No other message follows.
    case askOwner(port: UInt16)

    package struct Transfer: Sendable {
        /// `NetworkReport` has the same number.
        package let number: UInt32
        package let session: UInt8
        package let request: HTTPRequest
        package let conditions: TLSConditions
        package let proxy: Proxy?
        /// The limits for connecting and for everything.
        package let connectMilliseconds: UInt32
        package let totalMilliseconds: UInt32

        package init(
            number: UInt32,
            session: UInt8,
            _ request: HTTPRequest,
            _ conditions: TLSConditions = TLSConditions(),
            proxy: Proxy?,
            connectMilliseconds: UInt32,
            totalMilliseconds: UInt32
        ) {
            (self.number, self.session, self.request, self.conditions) = (number, session, request, conditions)
            (self.proxy, self.connectMilliseconds) = (proxy, connectMilliseconds)
            self.totalMilliseconds = totalMilliseconds
        }
    }
}

/// A message from badged-network to badged: the result of a transfer.
package struct NetworkReport: Sendable {
    package let number: UInt32
    package let result: Result<HTTPResponse, HTTPFault>
    /// The new connections to the server.
    package let handshakes: [TLSHandshake]
    /// Lines for the log: the faults that developer mode ignores.
    package let notes: [String]

    package init(
        number: UInt32,
        _ result: Result<HTTPResponse, HTTPFault>,
        handshakes: [TLSHandshake] = [],
        notes: [String] = []
    ) {
        (self.number, self.result, self.handshakes, self.notes) = (number, result, handshakes, notes)
    }
}

package enum NetworkMessage {
    /// The maximum number of sessions of one run.
    package static let maximumSessions: UInt8 = 4
    /// The maximum number of bytes of a request: the answers of a card to one batch, in XML.
    package static let maximumRequest = 16 << 20
    package static let maximumHeaders = 1000
    static let maximumHashes = 1 << 17
    static let maximumHandshakes = 64

    /// The maximum number of bytes of the report of a request.
    static func maximumReport(_ request: HTTPRequest) -> Int { (4 << 20) + 2 * request.maximumLength }
}

// MARK: Requests

extension NetworkRequest {
    package var bytes: [UInt8] {
        var writer: MessageWriter
        switch self {
        case .open(let session, let trust):
            writer = MessageWriter(kind: 1)
            writer.append(session)
            switch trust {
            case .system: writer.append(UInt8(0))
            case .authorities(let certificates):
                writer.append(UInt8(1))
                writer.append(block: certificates)
            case .service(let key, let isDeveloperMode):
                writer.append(UInt8(2))
                writer.append(isDeveloperMode)
                writer.append(key != nil)
                if let key {
                    writer.append(block: key.identity)
                    key.withKey { writer.append(block: $0) }
                }
            }
        case .transfer(let transfer):
            writer = MessageWriter(kind: 2)
            transfer.write(to: &writer)
        case .stop:
            writer = MessageWriter(kind: 3)
        case .listen(let port):
            writer = MessageWriter(kind: 4)
            writer.append(port)
        case .askOwner(let port):
            writer = MessageWriter(kind: 5)
            writer.append(port)
        }
        return writer.bytes
    }

    /// Parses a message; fails when the message is malformed.
    package init?(bytes: [UInt8]) {
        var reader = MessageReader(bytes)
        switch reader.number(UInt8.self) {
        case 1:
            guard let session = reader.number(UInt8.self), let trust = TLSTrust(&reader) else { return nil }
            self = .open(session: session, trust)
        case 2:
            guard let transfer = Transfer(&reader) else { return nil }
            self = .transfer(transfer)
        case 3: self = .stop
        case 4:
            guard let port = reader.number(UInt16.self) else { return nil }
            self = .listen(port: port)
        case 5:
            guard let port = reader.number(UInt16.self) else { return nil }
            self = .askOwner(port: port)
        default: return nil
        }
        guard reader.isAtEnd else { return nil }
    }
}

extension TLSTrust {
    fileprivate init?(_ reader: inout MessageReader) {
        switch reader.number(UInt8.self) {
        case 0: self = .system
        case 1:
            guard let certificates = reader.block() else { return nil }
            self = .authorities(certificates)
        case 2:
            guard let isDeveloperMode = reader.flag(), let hasKey = reader.flag() else { return nil }
            var key: PreSharedKey?
            if hasKey {
                guard let identity = reader.block(), var secret = reader.block() else { return nil }
                key = PreSharedKey(identity: identity, key: &secret)
            }
            self = .service(key, isDeveloperMode: isDeveloperMode)
        default: return nil
        }
    }
}

extension NetworkRequest.Transfer {
    fileprivate func write(to writer: inout MessageWriter) {
        writer.append(number)
        writer.append(session)
        writer.append(request.method.code)
        writer.append(block: request.address.text.utf8)
        writer.append(list: request.headers) { $0.append(block: $1.utf8) }
        writer.append(block: request.body)
        writer.append(UInt32(clamping: request.maximumLength))
        writer.append(request.readsDocument)
        writer.append(request.refusesPrivateServers)
        writer.append(conditions.requiresResumption)
        writer.append(conditions.listed != nil)
        if let listed = conditions.listed {
            writer.append(UInt8(listed.digest.count))
            writer.append(list: Array(listed.hashes)) { $0.append(block: $1) }
        }
        writer.append(proxy != nil)
        if let proxy {
            writer.append(block: proxy.address.utf8)
            writer.append(proxy.credentials != nil)
            proxy.credentials?.withLine { writer.append(block: $0) }
        }
        writer.append(connectMilliseconds)
        writer.append(totalMilliseconds)
    }

    fileprivate init?(_ reader: inout MessageReader) {
        guard let number = reader.number(UInt32.self), let session = reader.number(UInt8.self),
            let method = reader.number(UInt8.self).flatMap(HTTPRequest.Method.init(code:)),
            let address = reader.long().flatMap({ WebAddress($0) }),
            let headers = reader.list(maximum: NetworkMessage.maximumHeaders, { $0.long() }),
            let body = reader.block(), let maximumLength = reader.number(UInt32.self),
            let readsDocument = reader.flag(), let refusesPrivateServers = reader.flag(),
            let requiresResumption = reader.flag(), let isListed = reader.flag()
        else { return nil }
        var request = HTTPRequest(
            method: method,
            address: address,
            headers: headers,
            body: body,
            maximumLength: Int(maximumLength)
        )
        (request.readsDocument, request.refusesPrivateServers) = (readsDocument, refusesPrivateServers)
        var conditions = TLSConditions()
        conditions.requiresResumption = requiresResumption
        if isListed {
            guard let count = reader.number(UInt8.self),
                let digest = DigestAlgorithm.allCases.first(where: { $0.count == Int(count) }),
                let hashes = reader.list(maximum: NetworkMessage.maximumHashes, { $0.block() })
            else { return nil }
            conditions.listed = TLSConditions.Listed(digest: digest, hashes: Set(hashes))
        }
        guard let hasProxy = reader.flag() else { return nil }
        var proxy: Proxy?
        if hasProxy {
            guard let address = reader.long(), let hasCredentials = reader.flag() else { return nil }
            var credentials: Proxy.Credentials?
            if hasCredentials {
                guard let line = reader.block(), let read = line.withUnsafeBytes({ Proxy.Credentials(line: $0) }) else {
                    return nil
                }
                credentials = read
            }
            guard let read = Proxy(address, credentials) else { return nil }
            proxy = read
        }
        guard let connect = reader.number(UInt32.self), let total = reader.number(UInt32.self) else { return nil }
        self.init(
            number: number,
            session: session,
            request,
            conditions,
            proxy: proxy,
            connectMilliseconds: connect,
            totalMilliseconds: total
        )
    }
}

extension HTTPRequest.Method {
    fileprivate var code: UInt8 {
        switch self {
        case .get: 0
        case .post: 1
        case .put: 2
        case .connect: 3
        case .page: 4
        }
    }

    fileprivate init?(code: UInt8) {
        guard let method = [Self.get, .post, .put, .connect, .page].first(where: { $0.code == code }) else {
            return nil
        }
        self = method
    }
}

// MARK: Reports

extension NetworkReport {
    package var bytes: [UInt8] {
        var writer = MessageWriter(kind: 1)
        writer.append(number)
        writer.append(list: handshakes) { writer, handshake in handshake.write(to: &writer) }
        writer.append(list: notes) { $0.append(text: $1) }
        switch result {
        case .success(let response):
            writer.append(UInt8(0))
            writer.append(UInt16(response.status))
            writer.append(list: response.headers) { writer, header in
                writer.append(block: header.name.utf8)
                writer.append(block: header.value.utf8)
            }
            switch response.document {
            case nil:
                writer.append(UInt8(0))
                writer.append(block: response.body)
            case .success(let root):
                writer.append(UInt8(1))
                root.write(to: &writer)
            case .failure(let error):
                writer.append(UInt8(2))
                writer.append(text: error.text)
            }
        case .failure(let fault):
            let (code, words, number) = fault.parts
            writer.append(code)
            writer.append(text: words)
            writer.append(Int32(clamping: number))
        }
        return writer.bytes
    }

    /// Parses a message; fails when the message is malformed.
    package init?(bytes: [UInt8]) {
        var reader = MessageReader(bytes)
        guard reader.number(UInt8.self) == 1, let number = reader.number(UInt32.self),
            let handshakes = reader.list(maximum: NetworkMessage.maximumHandshakes, { TLSHandshake(&$0) }),
            let notes = reader.list(maximum: NetworkMessage.maximumHandshakes, { $0.text() }),
            let code = reader.number(UInt8.self)
        else { return nil }
        (self.number, self.handshakes, self.notes) = (number, handshakes, notes)
        if code == 0 {
            guard let response = HTTPResponse(&reader) else { return nil }
            result = .success(response)
        } else {
            guard let words = reader.text(), let value = reader.number(Int32.self),
                let fault = HTTPFault(code, words, Int(value))
            else { return nil }
            result = .failure(fault)
        }
        guard reader.isAtEnd else { return nil }
    }
}

extension HTTPResponse {
    fileprivate init?(_ reader: inout MessageReader) {
        guard let status = reader.number(UInt16.self), (100...999).contains(status),
            let headers = reader.list(
                maximum: NetworkMessage.maximumHeaders,
                { reader in
                    reader.long().flatMap { name in reader.long().map { (name: name, value: $0) } }
                }
            ), let kind = reader.number(UInt8.self)
        else { return nil }
        switch kind {
        case 0:
            guard let body = reader.block() else { return nil }
            self.init(status: Int(status), headers: headers, body: body)
        case 1:
            var count = 0
            guard let root = XMLElement(&reader, depth: 0, &count) else { return nil }
            self.init(status: Int(status), headers: headers)
            document = .success(root)
        case 2:
            guard let words = reader.text() else { return nil }
            self.init(status: Int(status), headers: headers)
            document = .failure(Malformed(words))
        default: return nil
        }
    }
}

extension TLSHandshake {
    fileprivate func write(to writer: inout MessageWriter) {
        writer.append(block: certificate)
        key.write(to: &writer)
        writer.append(ephemeralKey != nil)
        ephemeralKey?.write(to: &writer)
        writer.append(isResumed)
        writer.append(version)
    }

    fileprivate init?(_ reader: inout MessageReader) {
        guard let certificate = reader.block(), let key = Key(&reader), let hasEphemeralKey = reader.flag() else {
            return nil
        }
        var ephemeralKey: Key?
        if hasEphemeralKey {
            guard let key = Key(&reader) else { return nil }
            ephemeralKey = key
        }
        guard let isResumed = reader.flag(), let version = reader.number(UInt16.self) else { return nil }
        self.init(
            certificate: certificate,
            key: key,
            ephemeralKey: ephemeralKey,
            isResumed: isResumed,
            version: version
        )
    }
}

extension TLSHandshake.Key {
    fileprivate func write(to writer: inout MessageWriter) {
        writer.append(isElliptic)
        writer.append(UInt32(clamping: bits))
    }

    fileprivate init?(_ reader: inout MessageReader) {
        guard let isElliptic = reader.flag(), let bits = reader.number(UInt32.self) else { return nil }
        self.init(isElliptic: isElliptic, bits: Int(bits))
    }
}

extension HTTPFault {
    /// A code from 1, words, and a number.
    fileprivate var parts: (UInt8, String, Int) {
        switch self {
        case .cancelled: (1, "", 0)
        case .timeout: (2, "", 0)
        case .unreachable(let words): (3, words, 0)
        case .proxy(.unreachable, let words): (4, words, 0)
        case .proxy(.credentials, let words): (5, words, 0)
        case .proxy(.refused(let status), let words): (6, words, status)
        case .tls(nil, let words): (7, words, 0)
        case .tls(.certificate(let reason), _): (8, reason, 0)
        case .tls(.certificateKeyTooShort(let bits), let words): (9, words, bits)
        case .tls(.ephemeralKeyTooShort(let bits), let words): (10, words, bits)
        case .tls(.notListed, let words): (11, words, 0)
        case .tls(.notResumed, let words): (12, words, 0)
        case .tooLarge: (13, "", 0)
        // Only badged itself reports the last two.
        case .broken(let words), .unavailable(let words), .lost(let words): (14, words, 0)
        case .privateServer: (15, "", 0)
        }
    }

    fileprivate init?(_ code: UInt8, _ words: String, _ number: Int) {
        switch code {
        case 1: self = .cancelled
        case 2: self = .timeout
        case 3: self = .unreachable(words)
        case 4: self = .proxy(.unreachable, words)
        case 5: self = .proxy(.credentials, words)
        case 6: self = .proxy(.refused(status: number), words)
        case 7: self = .tls(nil, words)
        case 8: self = .tls(.certificate(words), words)
        case 9: self = .tls(.certificateKeyTooShort(bits: number), words)
        case 10: self = .tls(.ephemeralKeyTooShort(bits: number), words)
        case 11: self = .tls(.notListed, words)
        case 12: self = .tls(.notResumed, words)
        case 13: self = .tooLarge
        case 14: self = .broken(words)
        case 15: self = .privateServer
        default: return nil
        }
    }
}

// MARK: Documents

extension XMLElement {
    /// Limits of documents: no message of a service has as many or as deep elements.
    package static let maximumDepth = 32
    package static let maximumElements = 4096
    package static let maximumAttributes = 32

    fileprivate func write(to writer: inout MessageWriter) {
        writer.append(block: name.utf8)
        writer.append(list: attributes.map { ($0.key, $0.value) }) { writer, attribute in
            writer.append(block: attribute.0.utf8)
            writer.append(block: attribute.1.utf8)
        }
        writer.append(block: text.utf8)
        writer.append(list: children) { $1.write(to: &$0) }
    }

    fileprivate init?(_ reader: inout MessageReader, depth: Int, _ count: inout Int) {
        count += 1
        guard depth < Self.maximumDepth, count <= Self.maximumElements, let name = reader.long(),
            let attributes = reader.list(
                maximum: Self.maximumAttributes,
                { reader in reader.long().flatMap { name in reader.long().map { (name, $0) } } }
            ), let text = reader.long(),
            let children = reader.list(
                maximum: Self.maximumElements,
                { XMLElement(&$0, depth: depth + 1, &count) }
            )
        else { return nil }
        self.init(name: name)
        (self.text, self.children) = (text, children)
        self.attributes = Dictionary(attributes) { first, _ in first }
    }
}

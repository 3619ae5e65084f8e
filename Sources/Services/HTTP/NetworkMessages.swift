// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import Text

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
            self.number = number
            self.session = session
            self.request = request
            self.conditions = conditions
            self.proxy = proxy
            self.connectMilliseconds = connectMilliseconds
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
        self.number = number
        self.result = result
        self.handshakes = handshakes
        self.notes = notes
    }
}

package enum NetworkMessage {
    /// The maximum number of sessions of one run.
    package static let maximumSessions: UInt8 = 4
    /// The maximum number of bytes of a request: the answers of a card to one batch, in XML.
    package static let maximumRequest = 16 << 20
    package static let maximumHeaders = 1000
    static let maximumHashes = 1 << 17
    /// The maximum number of handshakes of a transfer, and of lines for the log.
    package static let maximumHandshakes = 64

    /// The maximum number of bytes of the report of a request.
    static func maximumReport(_ request: HTTPRequest) -> Int { (4 << 20) + 2 * request.maximumLength }
}

// MARK: Requests

extension NetworkRequest: FieldMessage {
    package var bytes: [UInt8] {
        switch self {
        case .open(let session, let trust): MessageWriter(kind: 1, session, trust).bytes
        case .transfer(let transfer): MessageWriter(kind: 2, transfer).bytes
        case .stop: MessageWriter(kind: 3).bytes
        case .listen(let port): MessageWriter(kind: 4, port).bytes
        case .askOwner(let port): MessageWriter(kind: 5, port).bytes
        }
    }

    package init(kind: UInt8, _ reader: inout MessageReader) throws(Malformed) {
        switch kind {
        case 1: self = .open(session: try reader.read(), try reader.read())
        case 2: self = .transfer(try reader.read())
        case 3: self = .stop
        case 4: self = .listen(port: try reader.read())
        case 5: self = .askOwner(port: try reader.read())
        default: throw Malformed("the kind of a request")
        }
    }
}

extension TLSTrust: MessageField {
    package func write(to writer: inout MessageWriter) {
        switch self {
        case .system: writer.append(UInt8(0))
        case .authorities(let certificates): writer.append(fields: [UInt8(1), certificates])
        case .service(let key, let isDeveloperMode):
            writer.append(fields: [UInt8(2), isDeveloperMode, key != nil])
            if let key {
                writer.append(block: key.identity)
                key.withKey { writer.append(block: $0) }
            }
        }
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        switch try reader.read(UInt8.self) {
        case 0: self = .system
        case 1: self = .authorities(try reader.read())
        case 2:
            let (isDeveloperMode, hasKey): (Bool, Bool) = (try reader.read(), try reader.read())
            var key: PreSharedKey?
            if hasKey {
                var (identity, secret): ([UInt8], [UInt8]) = (try reader.read(), try reader.read())
                key = PreSharedKey(identity: identity, key: &secret)
            }
            self = .service(key, isDeveloperMode: isDeveloperMode)
        default: throw Malformed("the authorities of a session")
        }
    }
}

extension NetworkRequest.Transfer: MessageField {
    package func write(to writer: inout MessageWriter) {
        writer.append(fields: [number, session, request.method])
        writer.append(block: request.address.text.utf8)
        writer.append(list: request.headers) { $0.append(block: $1.utf8) }
        writer.append(fields: [request.body, UInt32(clamping: request.maximumLength)])
        writer.append(fields: [request.readsDocument, request.refusesPrivateServers, conditions.requiresResumption])
        writer.append(optional: conditions.listed)
        writer.append(optional: proxy)
        writer.append(fields: [connectMilliseconds, totalMilliseconds])
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        number = try reader.read()
        session = try reader.read()
        var request = HTTPRequest(
            method: try reader.read(),
            address: try WebAddress(try reader.long()).field(),
            headers: try reader.list(maximum: NetworkMessage.maximumHeaders) { reader throws(Malformed) in
                try reader.long()
            },
            body: try reader.read(),
            maximumLength: Int(try reader.read(UInt32.self))
        )
        request.readsDocument = try reader.read()
        request.refusesPrivateServers = try reader.read()
        var conditions = TLSConditions()
        conditions.requiresResumption = try reader.read()
        conditions.listed = try reader.optional()
        self.request = request
        self.conditions = conditions
        proxy = try reader.optional()
        connectMilliseconds = try reader.read()
        totalMilliseconds = try reader.read()
    }
}

extension TLSConditions.Listed: MessageField {
    package func write(to writer: inout MessageWriter) {
        writer.append(UInt8(digest.count))
        writer.append(list: Array(hashes))
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        let count = Int(try reader.read(UInt8.self))
        digest = try DigestAlgorithm.allCases.first(where: { $0.count == count }).field()
        hashes = Set(try reader.list(maximum: NetworkMessage.maximumHashes))
    }
}

extension Proxy: MessageField {
    package func write(to writer: inout MessageWriter) {
        writer.append(block: address.utf8)
        writer.append(credentials != nil)
        credentials?.withLine { writer.append(block: $0) }
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        let address = try reader.long()
        var line: [UInt8]? = try reader.optional()
        defer { line?.wipe() }
        let credentials = try line.map { line throws(Malformed) in
            try line.withUnsafeBytes { Credentials(line: $0) }.field()
        }
        self = try Proxy(address, credentials).field()
    }
}

// MARK: Reports

extension NetworkReport: FieldMessage {
    /// The number of a report that is not parsed yet; nil if it is malformed.
    static func number(of bytes: [UInt8]) -> UInt32? {
        var reader = MessageReader(bytes)
        guard (try? reader.read(UInt8.self)) == 1 else { return nil }
        return try? reader.read()
    }

    package var bytes: [UInt8] {
        var writer = MessageWriter(kind: 1, number)
        writer.append(list: handshakes)
        writer.append(list: notes)
        switch result {
        case .success(let response): writer.append(fields: [UInt8(0), response])
        case .failure(let fault):
            let (code, words, number) = fault.parts
            writer.append(fields: [code, words, Int32(clamping: number)])
        }
        return writer.bytes
    }

    package init(kind: UInt8, _ reader: inout MessageReader) throws(Malformed) {
        guard kind == 1 else { throw Malformed("the kind of a report") }
        number = try reader.read()
        handshakes = try reader.list(maximum: NetworkMessage.maximumHandshakes)
        notes = try reader.list(maximum: NetworkMessage.maximumHandshakes)
        let code: UInt8 = try reader.read()
        if code == 0 {
            result = .success(try reader.read())
        } else {
            let (words, number): (String, Int32) = (try reader.read(), try reader.read())
            result = .failure(try HTTPFault(code, words, Int(number)).field())
        }
    }
}

extension HTTPResponse: MessageField {
    package func write(to writer: inout MessageWriter) {
        writer.append(UInt16(status))
        writer.append(pairs: headers)
        switch document {
        case nil: writer.append(fields: [UInt8(0), body])
        case .success(let root):
            writer.append(UInt8(1))
            root.write(to: &writer)
        case .failure(let error): writer.append(fields: [UInt8(2), error.text])
        }
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        let status = Int(try reader.read(UInt16.self))
        guard (100...999).contains(status) else { throw Malformed("a status") }
        let headers = try reader.pairs(maximum: NetworkMessage.maximumHeaders)
        switch try reader.read(UInt8.self) {
        case 0: self.init(status: status, headers: headers, body: try reader.read())
        case 1:
            var counts = (elements: 0, attributes: 0)
            self.init(status: status, headers: headers)
            document = .success(try XMLElement(&reader, depth: 0, &counts))
        case 2:
            self.init(status: status, headers: headers)
            document = .failure(Malformed(try reader.read(String.self)))
        default: throw Malformed("the kind of a body")
        }
    }
}

extension TLSHandshake: MessageField {
    package func write(to writer: inout MessageWriter) {
        writer.append(fields: [certificate, key])
        writer.append(optional: ephemeralKey)
        writer.append(fields: [isResumed, version])
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        certificate = try reader.read()
        key = try reader.read()
        ephemeralKey = try reader.optional()
        isResumed = try reader.read()
        version = try reader.read()
    }
}

extension TLSHandshake.Key: MessageField {
    package func write(to writer: inout MessageWriter) {
        writer.append(fields: [isElliptic, UInt32(clamping: bits)])
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        isElliptic = try reader.read()
        bits = Int(try reader.read(UInt32.self))
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
        case .broken(let words): (14, words, 0)
        // Only badged itself reports these two.
        case .unavailable(let words), .lost(let words): (14, words.description, 0)
        case .privateServer: (15, "", 0)
        case .proxy(.login, let words): (16, words, 0)
        case .proxy(.method, let words): (17, words, 0)
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
        case 16: self = .proxy(.login, words)
        case 17: self = .proxy(.method, words)
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
    /// The maximum number of attributes of a whole document.
    package static let maximumAttributesInAll = 4096

    fileprivate func write(to writer: inout MessageWriter) {
        writer.append(block: name.utf8)
        writer.append(pairs: attributes.map { (name: $0.key, value: $0.value) })
        writer.append(block: text.utf8)
        writer.append(list: children) { $1.write(to: &$0) }
    }

    fileprivate init(
        _ reader: inout MessageReader,
        depth: Int,
        _ counts: inout (elements: Int, attributes: Int)
    ) throws(Malformed) {
        counts.elements += 1
        guard depth < Self.maximumDepth, counts.elements <= Self.maximumElements else { throw Malformed("a document") }
        name = try reader.comparable()
        let attributes = try reader.pairs(maximum: Self.maximumAttributes)
        counts.attributes += attributes.count
        guard counts.attributes <= Self.maximumAttributesInAll,
            attributes.allSatisfy({ $0.name.isComparable && $0.value.isComparable })
        else {
            throw Malformed("the attributes of a document")
        }
        self.attributes = Dictionary(attributes.map { ($0.name, $0.value) }) { first, _ in first }
        text = try reader.long()
        children = try reader.list(maximum: Self.maximumElements) { reader throws(Malformed) in
            try XMLElement(&reader, depth: depth + 1, &counts)
        }
    }
}

/// Names with their values, such as headers.
extension MessageWriter {
    fileprivate mutating func append(pairs: [(name: String, value: String)]) {
        append(list: pairs) { writer, pair in
            writer.append(block: pair.name.utf8)
            writer.append(block: pair.value.utf8)
        }
    }
}

extension MessageReader {
    fileprivate mutating func pairs(maximum: Int) throws(Malformed) -> [(name: String, value: String)] {
        try list(maximum: maximum) { reader throws(Malformed) in (name: try reader.long(), value: try reader.long()) }
    }

    /// Reads a text that can be compared in linear time.
    fileprivate mutating func comparable() throws(Malformed) -> String {
        let text = try long()
        guard text.isComparable else { throw Malformed("a name of a document") }
        return text
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import EID
import Server
import Synchronization
import Text

/// One authentication, from the token to the end. Each message of the client is answered with the next message of the
/// server. TR-03112-7 3.6.4.
final class Conversation: @unchecked Sendable {
    enum State: String {
        case start, initializing, eac1, additional, eac2, transmit, done
        /// A fault was sent; the client should now report an error.
        case faulty
    }

    let id: String
    let psk: [UInt8]
    let options: ServiceOptions
    /// The scheme, host and port of the eService, as in its subjectURL.
    let origin: String
    let authority: CVAuthority
    let today: CVDate
    /// The hashes of TLS certificates for the description.
    let certificateHashes: [[UInt8]]
    /// `Handshake.session` of the connection that fetched the token.
    let tokenSession: [UInt8]

    /// Protects everything below, since a client may send messages at the same time.
    private let lock = Mutex(())
    var state = State.start
    var report = Report()
    var slot = "00"
    var description: [UInt8] = []
    var auxiliaryData = AuxiliaryData([:])
    var effective: AccessRights = []
    var idPICC: [UInt8] = []
    var challenge: [UInt8] = []
    var ephemeral: EphemeralKey?
    var reading: CardReading?
    private var lastID: String?

    /// Holds a private key in a class.
    final class EphemeralKey {
        let key: ECPrivateKey
        init(on curve: Curve) throws(CryptoError) { key = try ECPrivateKey(on: curve.group) }
    }

    init(
        _ options: ServiceOptions,
        origin: String,
        authority: CVAuthority,
        certificateHashes: [[UInt8]],
        today: CVDate,
        handshake: Handshake
    ) throws(CryptoError) {
        (self.options, self.origin, self.authority, self.today) = (options, origin, authority, today)
        (self.certificateHashes, tokenSession) = (certificateHashes, handshake.session)
        id = Hex.encode(try Random.bytes(16))
        psk = try Random.bytes(32)
        report.handshakes.append(handshake.json)
    }

    func locked<T>(_ body: (Conversation) throws -> T) rethrows -> T { try lock.withLock { _ in try body(self) } }

    var json: JSON { locked { $0.report.json(session: id, options, state: $0.state.rawValue) } }
    var messages: JSON { locked { .array($0.report.messages) } }

    // MARK: One exchange

    /// Answers a POST of the client.
    func answer(_ request: HTTPRequest, _ handshake: Handshake) -> HTTPResponse {
        locked { conversation in
            let begin = Report.microseconds
            var response = conversation.exchange(request, handshake)
            response.closes = !options.keepsConnections
            conversation.report.busy += Report.microseconds - begin
            return response
        }
    }

    private func exchange(_ request: HTTPRequest, _ handshake: Handshake) -> HTTPResponse {
        report.handshakes.append(handshake.json)
        report.message("client", request.body)
        check(request, handshake)
        let message: PAOSMessage
        do throws(PAOSMessage.Unreadable) {
            message = try PAOSMessage(request.body)
        } catch {
            report.finish("the client's message is unreadable: \(error.message)")
            return HTTPResponse(400, text: error.message)
        }
        check(message)
        report.event("received", [.init("message", .string(message.protocolType ?? message.name))])
        do throws(ConversationError) {
            return try next(message)
        } catch {
            report.event("aborted", [.init("minor", .string(error.minor)), .init("why", .string(error.message))])
            report.finish(error.message)
            state = .done
            return send(PAOSAnswer.startPAOSResponse(error), to: message)
        }
    }

    private func next(_ message: PAOSMessage) throws(ConversationError) -> HTTPResponse {
        switch (state, message.name) {
        case (.start, "StartPAOS"): return try start(message)
        case (.initializing, "InitializeFrameworkResponse"):
            try requireOK(message)
            return try sendEAC1(message)
        case (.eac1, "DIDAuthenticateResponse"): return try receiveEAC1(message)
        case (.additional, "DIDAuthenticateResponse"): return try receiveChallenge(message)
        case (.eac2, "DIDAuthenticateResponse"): return try receiveEAC2(message)
        case (.transmit, "TransmitResponse"): return try receiveTransmit(message)
        case (.faulty, _):
            record(message.result)
            throw .internalError("the end of a run with a fault")
        default: throw .incorrectParameter("\(message.name) is not expected now (\(state.rawValue))")
        }
    }

    /// Notes the requirements of TR-03112-7 for each POST that are not met.
    private func check(_ request: HTTPRequest, _ handshake: Handshake) {
        if request.headers["paos"]?.contains(PAOSNamespace.paos.rawValue) != true {
            report.note("HTTP header PAOS is missing or names another version")
        }
        if request.headers["accept"]?.contains("application/vnd.paos+xml") != true {
            report.note("HTTP header Accept lacks application/vnd.paos+xml")
        }
        if options.mode == .attached, handshake.session != tokenSession {
            report.note("the PAOS connection does not resume the TLS session of the token")
        }
    }

    private func check(_ message: PAOSMessage) {
        if message.messageID?.isEmpty != false { report.note("\(message.name): no MessageID") }
        if lastID != nil, message.relatesTo != lastID {
            report.note("\(message.name): RelatesTo is not our last message")
        }
        if !message.hasPAOSHeader { report.note("\(message.name): no PAOS block in the header") }
    }

    func record(_ result: PAOSMessage.Result?) {
        if let result { report.client.append(.init("result", result.json)) }
    }

    /// Throws the error that the client reports.
    func requireOK(_ message: PAOSMessage) throws(ConversationError) {
        guard message.result?.major != "ok" else { return }
        record(message.result)
        let minor = message.result?.minor
        throw ConversationError(
            minor: minor ?? "/al/common#internalError",
            message: "the client reports \(minor ?? "no result")"
        )
    }

    // MARK: Answers

    func send(_ body: XML, to message: PAOSMessage) -> HTTPResponse {
        let id = PAOSAnswer.messageID()
        lastID = id
        let relatesTo = options.fault == .startRelates ? PAOSAnswer.messageID() : message.messageID
        return respond(PAOSAnswer.envelope(body, id: id, relatesTo: relatesTo))
    }

    func respond(_ document: [UInt8]) -> HTTPResponse {
        report.message("server", document)
        return HTTPResponse(200, PAOSAnswer.contentType, document)
    }

    /// The answer of a fault that replaces a whole message of this stage; nil when there is none.
    func replacement(_ stage: String, for message: PAOSMessage) throws(ConversationError) -> HTTPResponse? {
        guard let fault = options.fault, fault.stage == stage else { return nil }
        let response: HTTPResponse?
        switch fault.kind {
        case "500", "404": response = HTTPResponse(Int(fault.kind) ?? 500, text: "requested fault")
        case "empty": response = respond([])
        case "malformed": response = respond(Array("<soap:Envelope><Body".utf8))
        case "entities": response = respond(Hostile.entities(root: "soap:Envelope"))
        case "huge": response = respond(Hostile.huge(PAOSAnswer.envelope(PAOSAnswer.unknown, id: "x", relatesTo: nil)))
        case "deep": response = respond(Hostile.deep)
        case "close": response = .reset
        case "unknown": response = send(PAOSAnswer.unknown, to: message)
        case "soap-fault": response = send(PAOSAnswer.soapFault, to: message)
        case "wrong-order":
            response = send(PAOSAnswer.transmit(slot: slot, [(digits: "00a4020c02011c", acceptable: [])]), to: message)
        case "server-error": throw .internalError("requested fault")
        default: response = nil
        }
        guard let response else { return nil }
        report.event("fault", [.init("name", .string(fault.rawValue))])
        state = .faulty
        return response
    }

    /// Delays the answer when the fault of this stage is slow.
    func delayed(_ response: HTTPResponse, _ stage: String) -> HTTPResponse {
        var response = response
        if options.fault?.rawValue == "\(stage)-slow" { response.delay = 8 }
        if options.fault?.rawValue == "\(stage)-drip" { response.delivery = .drip(milliseconds: 1000) }
        return response
    }

    // MARK: StartPAOS

    private func start(_ message: PAOSMessage) throws(ConversationError) -> HTTPResponse {
        if let agent = message.body.child(.iso, "UserAgent") {
            let fields = agent.children.map { JSON.Member($0.name.local, .string($0.trimmed)) }
            report.client.append(.init("userAgent", .object(fields)))
        } else {
            report.note("StartPAOS: no UserAgent")
        }
        guard message.body.child(.iso, "SessionIdentifier")?.trimmed == id else {
            throw .incorrectParameter("StartPAOS: another SessionIdentifier")
        }
        let handle = message.body.child(.iso, "ConnectionHandle")
        if handle?.child(.iso, "CardApplication") == nil { report.note("StartPAOS: no CardApplication") }
        slot = handle?.child(.iso, "SlotHandle")?.trimmed ?? slot
        if let response = try replacement("start", for: message) { return response }
        if options.initializesFramework {
            state = .initializing
            return send(PAOSAnswer.initializeFramework, to: message)
        }
        return delayed(try sendEAC1(message), "start")
    }
}

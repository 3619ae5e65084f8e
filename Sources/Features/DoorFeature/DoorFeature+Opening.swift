// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorOpening
import DoorReaders
import Host
import Scanners
import Server
import Text
import Wire

/// The commands that open readers. docs/protocol/door-readers.md.
extension DoorFeature {
    var openingCommands: [CommandSpec] {
        [
            opening("OPEN_READER", openReader),
            opening("TRIGGER", trigger),
            opening("ALLOW_OPEN", allowOpen),
            opening("SET_TIMEOUTS") { [self] session, command in
                setTimeouts(session, command)
                return .answered
            },
            opening("SET_AUTO_OPEN") { [self] session, command in
                setAutoOpen(session, command)
                return .answered
            },
        ]
    }

    private func opening(
        _ name: String,
        _ perform: @escaping @Loop (Session, Command) -> CommandOutcome
    ) -> CommandSpec {
        CommandSpec(name, permission: [.scan, .open], perform: perform)
    }

    private func client(of session: Session) -> OpeningClient {
        if let client = openingClients[ObjectIdentifier(session)] { return client }
        let client = OpeningClient()
        openingClients[ObjectIdentifier(session)] = client
        return client
    }

    /// The readers of a new scan have other numbers.
    func forgetReaders(of session: Session) { openingClients[ObjectIdentifier(session)]?.forgetReaders() }

    /// Ends the openings and questions of a session.
    func endOpenings(of session: Session) {
        guard let client = openingClients.removeValue(forKey: ObjectIdentifier(session)) else { return }
        for task in client.openings.values { task.cancel() }
        for question in client.questions.values { question.alarm.cancel() }
    }

    // MARK: Commands

    private func openReader(_ session: Session, _ command: Command) -> CommandOutcome {
        let (id, type, key): (String, OpeningType, String?)
        do throws(ParameterError) {
            id = try Self.text(command, "reader")
            type = try Self.openingType(command)
            key = try Self.optionalText(command, "key")
        } catch {
            session.answer(OpeningRefusedMessage(error: error.text), to: command)
            return .answered
        }
        guard let radio, let filter = scanFilter(of: session) else {
            return refuse(session, command, Self.noScan, id)
        }
        let found = radio.tracker.readers(filter, activeOnly: true, at: radio.now).first { $0.id == id }
        guard let reader = found else { return refuse(session, command, Self.notReceived, id) }
        guard type == .applicationSpecific || reader.openingTypes.contains(type) else {
            return refuse(session, command, Self.unsupported(type), id)
        }
        return begin(session, command, reader, type, key)
    }

    private static let noScan = OpeningResult(.outOfRange, reason: "this client does not scan")
    private static let notReceived = OpeningResult(.outOfRange, reason: "the reader is not received")

    private func trigger(_ session: Session, _ command: Command) -> CommandOutcome {
        let (type, key): (OpeningType, String?)
        do throws(ParameterError) {
            type = try Self.openingType(command)
            key = try Self.optionalText(command, "key")
        } catch {
            session.answer(OpeningRefusedMessage(error: error.text), to: command)
            return .answered
        }
        guard let radio, let filter = scanFilter(of: session) else {
            return refuse(session, command, Self.noScan, nil)
        }
        switch radio.tracker.closest(for: type, filter, at: radio.now) {
        case .success(let reader): return begin(session, command, reader, type, key)
        case .failure(let absence):
            let result =
                switch absence {
                case .none: OpeningResult(.outOfRange, reason: "no reader is received")
                case .outOfRange: OpeningResult(.outOfRange, reason: "the closest reader is not near enough")
                case .coolingDown: OpeningResult(.busy, reason: "the closest reader was opened just now")
                case .notSupported: Self.unsupported(type)
                }
            return refuse(session, command, result, nil)
        }
    }

    private func allowOpen(_ session: Session, _ command: Command) -> CommandOutcome {
        let client = client(of: session)
        guard case .value(let number) = command.int("token"), let token = number,
            case .value(let isAllowed) = command.bool("allow")
        else {
            session.answer(OpeningRefusedMessage(error: "token must be a number, and allow true or false"), to: command)
            return .answered
        }
        guard let question = client.questions.removeValue(forKey: token) else { return .badState }
        question.alarm.cancel()
        guard isAllowed else {
            session.answer(Self.message(client.autoOpen), to: command)
            return .answered
        }
        let reader = question.reader
        guard let radio, scanFilter(of: session) != nil else {
            return refuse(session, command, Self.noScan, reader.id)
        }
        guard reader.isActive(at: radio.now) else { return refuse(session, command, Self.notReceived, reader.id) }
        return begin(session, command, reader, question.openingType, question.key)
    }

    private func setTimeouts(_ session: Session, _ command: Command) {
        let client = client(of: session)
        var timeouts = client.timeouts
        let members: [(StaticString, WritableKeyPath<OpeningTimeouts, Milliseconds>)] = [
            ("fragmentMs", \.fragment), ("apduMs", \.apdu), ("connectMs", \.connect),
        ]
        for (name, path) in members {
            switch command.int(name) {
            case .missing: break
            case .value(let number?) where (50...60_000).contains(number):
                timeouts[keyPath: path] = Milliseconds(number)
            case .invalid, .value:
                let error = "\(name) must be 50 to 60000"
                return session.answer(TimeoutsMessage(timeouts: client.timeouts, error: error), to: command)
            }
        }
        client.timeouts = timeouts
        session.answer(TimeoutsMessage(timeouts: timeouts), to: command)
    }

    private func setAutoOpen(_ session: Session, _ command: Command) {
        let client = client(of: session)
        var new = AutoOpen()
        do throws(ParameterError) {
            guard let mode = AutoOpen.Mode(rawValue: try Self.text(command, "mode")) else {
                throw ParameterError(parameter: "mode")
            }
            new.mode = mode
            if case .missing = command.string("openingType") {} else { new.openingType = try Self.openingType(command) }
            new.key = try Self.optionalText(command, "key")
        } catch {
            var message = Self.message(client.autoOpen)
            message.error = error.text
            return session.answer(message, to: command)
        }
        client.autoOpen = new
        for question in client.questions.values { question.alarm.cancel() }
        client.questions = [:]
        session.answer(Self.message(new), to: command)
        session.server.log(.info, "\(session.name) has set automatic opening to \(new.mode.rawValue)")
        guard new.mode != .off, let radio, let filter = scanFilter(of: session) else { return }
        let now = radio.now
        for reader in radio.tracker.readers(filter, activeOnly: true, at: now) {
            noticed(reader, isLost: false, session, at: now)
        }
    }

    private static func message(_ autoOpen: AutoOpen) -> AutoOpenMessage {
        AutoOpenMessage(mode: autoOpen.mode, openingType: autoOpen.openingType)
    }

    // MARK: Openings

    /// A reader of the scan of this session has changed. Opens it, or asks the client, if automatic opening is on.
    func noticed(_ reader: DoorReader, isLost: Bool, _ session: Session, at now: Milliseconds) {
        guard let client = openingClients[ObjectIdentifier(session)] else { return }
        let isConnected = client.isConnected(reader, at: now)
        guard client.autoOpen.notice(reader, isLost: isLost, isConnected: isConnected, at: now) else { return }
        let (type, key) = (client.autoOpen.openingType, client.autoOpen.key)
        if client.autoOpen.mode == .on {
            if let refusal = refusal(session, reader) {
                session.push(OpeningResultMessage(reader: reader.id, result: refusal))
            } else if let message = start(session, reader, type, key) {
                session.push(message)
            }
            return
        }
        guard client.questions.count < OpeningClient.mostQuestions else { return }
        let token = nextToken()
        let alarm = Loop.Alarm { [weak client] in client?.questions[token] = nil }
        alarm.set(after: OpeningClient.questionTime)
        client.questions[token] = .init(reader: reader, openingType: type, key: key, alarm: alarm)
        let expires = OpeningClient.questionTime
        session.push(AskOpenMessage(token: token, reader: reader.id, openingType: type, expires: expires))
    }

    private func begin(
        _ session: Session,
        _ command: Command,
        _ reader: DoorReader,
        _ type: OpeningType,
        _ key: String?
    ) -> CommandOutcome {
        if let refusal = refusal(session, reader) { return refuse(session, command, refusal, reader.id) }
        guard let message = start(session, reader, type, key) else { return .badState }
        session.answer(message, to: command)
        return .answered
    }

    /// Why the reader cannot be opened at all; nil: it can be tried.
    private func refusal(_ session: Session, _ reader: DoorReader) -> OpeningResult? {
        guard DoorDriver.exists(for: reader.profile) else {
            let reason = "badged has no driver for readers of the profile \(reader.profile.rawValue)"
            return OpeningResult(.openingTypeNotSupported, reason: reason)
        }
        if let radio, reader.coolsDown(at: radio.now) {
            return OpeningResult(.busy, reason: "the reader was opened just now")
        }
        guard opener != nil else {
            return OpeningResult(.bluetoothCommunicationFailed, reason: "badged runs without connections to readers")
        }
        guard credentials != nil, session.uid != nil else {
            return OpeningResult(.keyNotFound, reason: "badged has no key store, and so no key for PKOC readers")
        }
        guard client(of: session).openings.count < OpeningClient.mostOpenings else {
            return OpeningResult(.busy, reason: "this client opens \(OpeningClient.mostOpenings) readers already")
        }
        return nil
    }

    /// Starts an opening. Its further states and its result follow as messages.
    /// - Returns: the first state; nil if the reader cannot be opened.
    private func start(
        _ session: Session,
        _ reader: DoorReader,
        _ type: OpeningType,
        _ keyID: String?
    ) -> OpeningMessage? {
        guard refusal(session, reader) == nil, let opener, let credentials, let uid = session.uid else { return nil }
        let client = client(of: session)
        let token = nextToken()
        let (id, address, adapter) = (reader.id, reader.address, reader.adapter)
        let timeouts = client.timeouts
        client.began(reader)
        client.openings[token] = Task { @Loop [weak self, weak session] in
            let begun = Loop.now
            let result = await Self.open(opener, credentials, uid, keyID, address, adapter, timeouts) { state in
                // The first state is in the answer.
                guard state != .connecting else { return }
                session?.push(OpeningMessage(token: token, reader: id, openingType: type, state: state))
            }
            if result.status == .success, let used = result.key { await credentials.used(uid: uid, keyID: used) }
            guard let self, let session else { return }
            client.openings[token] = nil
            if let radio = self.radio {
                client.ended(reader, at: radio.now)
                if result.status == .success { radio.tracker.opened(reader, at: radio.now) }
            }
            let detail = result.reason.map { ". \($0)" } ?? ""
            let text =
                "\(session.name) has opened \(id): \(result.status.rawValue), \(result.decision.rawValue)\(detail)"
            session.server.log(.notice, text)
            session.push(
                OpeningResultMessage(token: token, reader: id, result: result, duration: Loop.now - begun)
            )
        }
        return OpeningMessage(token: token, reader: id, openingType: type, state: .connecting)
    }

    private static func open(
        _ opener: DoorOpener,
        _ provider: any CredentialProvider,
        _ uid: UInt32,
        _ keyID: String?,
        _ address: DeviceAddress,
        _ adapter: Int,
        _ timeouts: OpeningTimeouts,
        _ changed: @escaping @Loop (OpeningState) -> Void
    ) async -> OpeningResult {
        let found: [DoorCredential]
        do throws(CredentialError) {
            found = try await provider.credentials(uid: uid, keyID: keyID)
        } catch {
            return OpeningResult(.keyNotFound, reason: error.text)
        }
        guard !found.isEmpty else {
            let wanted = keyID ?? "for PKOC readers"
            return OpeningResult(.keyNotFound, reason: "there is no active key \(wanted), or it has expired")
        }
        return await opener.open(address, adapter: adapter, found, timeouts, changed: changed)
    }

    private func refuse(
        _ session: Session,
        _ command: Command,
        _ result: OpeningResult,
        _ reader: String?
    ) -> CommandOutcome {
        session.answer(OpeningResultMessage(reader: reader, result: result), to: command)
        return .answered
    }

    private static func unsupported(_ type: OpeningType) -> OpeningResult {
        let status: OpeningStatus =
            switch type {
            case .motion: .motionNotSupported
            case .proximity, .enhancedTap: .tapNotSupported
            case .seamless, .applicationSpecific: .openingTypeNotSupported
            }
        return OpeningResult(status, reason: "the reader cannot be opened by \(type.name)")
    }

    // MARK: Parameters

    private static func openingType(_ command: Command) throws(ParameterError) -> OpeningType {
        guard let type = OpeningType(name: try text(command, "openingType")) else {
            throw ParameterError(parameter: "openingType")
        }
        return type
    }

    private static func text(_ command: Command, _ name: StaticString) throws(ParameterError) -> String {
        guard let text = try optionalText(command, name) else { throw ParameterError(parameter: name.description) }
        return text
    }

    private static func optionalText(_ command: Command, _ name: StaticString) throws(ParameterError) -> String? {
        switch command.string(name) {
        case .missing: return nil
        case .value(let text) where !text.isEmpty && text.utf8.count <= 256: return text
        case .invalid, .value: throw ParameterError(parameter: name.description)
        }
    }
}

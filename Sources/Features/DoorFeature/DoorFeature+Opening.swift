// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorOpening
import DoorReaders
import Host
import Scanners
import Server
import Text

/// The commands that open readers. docs/protocol/door-readers.md.
extension DoorFeature {
    var openingCommands: [CommandSpec] {
        let permission: Permissions = [.scan, .open]
        return [
            CommandSpec("OPEN_READER", OpeningResultMessage.name, permission: permission, openReader),
            CommandSpec("TRIGGER", OpeningResultMessage.name, permission: permission, trigger),
            CommandSpec("ALLOW_OPEN", OpeningResultMessage.name, permission: permission, allowOpen),
            // A command for settings that has failed is answered with the settings in force.
            CommandSpec(
                "SET_TIMEOUTS",
                TimeoutsMessage.name,
                permission: permission,
                refusal: { [self] failure, session in
                    Reply(TimeoutsMessage(timeouts: client(of: session).timeouts, error: failure.message))
                },
                setTimeouts
            ),
            CommandSpec(
                "SET_AUTO_OPEN",
                AutoOpenMessage.name,
                permission: permission,
                refusal: { [self] failure, session in
                    var message = Self.message(client(of: session).autoOpen)
                    message.error = failure.message
                    return Reply(message)
                },
                setAutoOpen
            ),
            CommandSpec("START_OPENINGS", OpeningsMessage.name, permission: .openings) { [self] call in
                openingWatchers[ObjectIdentifier(call.session)] = call.session
                return Reply(OpeningsMessage(isWatching: true))
            },
            CommandSpec("STOP_OPENINGS", OpeningsMessage.name, permission: .openings) { [self] call in
                openingWatchers[ObjectIdentifier(call.session)] = nil
                return Reply(OpeningsMessage(isWatching: false))
            },
        ]
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

    /// Ends the openings and questions of a client that may no longer open readers, and reports it to the client.
    func denyOpenings(of session: Session) {
        guard let client = openingClients[ObjectIdentifier(session)] else { return }
        // Each opening reports its end.
        for task in client.openings.values { task.cancel() }
        for question in client.questions.values { question.alarm.cancel() }
        client.questions = [:]
        client.autoOpen = AutoOpen()
        var message = Self.message(client.autoOpen)
        message.error = Workflow.denied
        session.push(message)
    }

    // MARK: Commands

    private func openReader(_ call: Call) throws(Failure) -> Reply {
        let id = try call.arguments.text("reader", 1...256)
        let type = try call.arguments.openingType()
        let key = try call.arguments.optionalText("key", 1...256)
        guard let radio, let filter = scanFilter(of: call.session) else { return refused(Self.noScan, id) }
        let found = radio.tracker.readers(filter, activeOnly: true, at: radio.now).first { $0.id == id }
        guard let reader = found else { return refused(Self.notReceived, id) }
        guard type == .applicationSpecific || reader.openingTypes.contains(type) else {
            return refused(Self.unsupported(type), id)
        }
        return Reply(open(reader, type, key, for: call.session))
    }

    private func refused(_ result: OpeningResult, _ reader: String?) -> Reply {
        Reply(OpeningResultMessage(reader: reader, result: result))
    }

    private static let noScan = OpeningResult(.outOfRange, reason: "this client does not scan")
    private static let notReceived = OpeningResult(.outOfRange, reason: "the reader is not received")

    private func trigger(_ call: Call) throws(Failure) -> Reply {
        let type = try call.arguments.openingType()
        let key = try call.arguments.optionalText("key", 1...256)
        guard let radio, let filter = scanFilter(of: call.session) else { return refused(Self.noScan, nil) }
        switch radio.tracker.closest(for: type, filter, at: radio.now) {
        case .reader(let reader): return Reply(open(reader, type, key, for: call.session))
        case .none(let absence):
            let result =
                switch absence {
                case .none: OpeningResult(.outOfRange, reason: "no reader is received")
                case .outOfRange: OpeningResult(.outOfRange, reason: "the closest reader is not near enough")
                case .coolingDown: OpeningResult(.busy, reason: "the closest reader was opened just now")
                case .notSupported: Self.unsupported(type)
                }
            return refused(result, nil)
        }
    }

    private func allowOpen(_ call: Call) throws(Failure) -> Reply {
        let client = client(of: call.session)
        let token = try call.arguments.number("token", 0...Int.max)
        let isAllowed = try call.arguments.requiredFlag("allow")
        guard let question = client.questions.removeValue(forKey: token) else { throw .badState }
        question.alarm.cancel()
        guard isAllowed else { return Reply(Self.message(client.autoOpen)) }
        let reader = question.reader
        guard let radio, scanFilter(of: call.session) != nil else { return refused(Self.noScan, reader.id) }
        guard reader.isActive(at: radio.now) else { return refused(Self.notReceived, reader.id) }
        // Another opening has begun since the question, so the reader is asked for again.
        if !hasRoom(for: reader, client) { client.autoOpen.forgetVisit(reader) }
        return Reply(open(reader, question.openingType, question.key, for: call.session))
    }

    private func setTimeouts(_ call: Call) throws(Failure) -> Reply {
        let client = client(of: call.session)
        var timeouts = client.timeouts
        let members: [(StaticString, WritableKeyPath<OpeningTimeouts, Milliseconds>)] = [
            ("fragmentMs", \.fragment), ("apduMs", \.apdu), ("connectMs", \.connect),
        ]
        for (name, path) in members {
            guard let number = try call.arguments.optionalNumber(name, 50...60_000) else { continue }
            timeouts[keyPath: path] = Milliseconds(number)
        }
        client.timeouts = timeouts
        return Reply(TimeoutsMessage(timeouts: timeouts))
    }

    private func setAutoOpen(_ call: Call) throws(Failure) -> Reply {
        let session = call.session
        let client = client(of: session)
        var new = AutoOpen()
        new.mode = try call.arguments.word("mode", AutoOpen.Mode.words)
        new.openingType = try call.arguments.optionalOpeningType() ?? new.openingType
        new.key = try call.arguments.optionalText("key", 1...256)
        client.autoOpen = new
        for question in client.questions.values { question.alarm.cancel() }
        client.questions = [:]
        session.log(.info, "\(session.name) has set automatic opening to \(new.mode.rawValue)")
        return Reply(Self.message(new)) { [self] in
            guard client.autoOpen.mode != .off, let radio, let filter = scanFilter(of: session) else { return }
            let now = radio.now
            for reader in radio.tracker.readers(filter, activeOnly: true, at: now) {
                noticed(reader, isLost: false, session, at: now)
            }
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
        let hasRoom = hasRoom(for: reader, client)
        guard client.autoOpen.notice(reader, isLost: isLost, isConnected: isConnected, hasRoom: hasRoom, at: now)
        else { return }
        let (type, key) = (client.autoOpen.openingType, client.autoOpen.key)
        if client.autoOpen.mode == .on { return session.push(open(reader, type, key, for: session)) }
        guard client.questions.count < OpeningClient.mostQuestions else { return }
        let token = nextToken()
        let alarm = Loop.Alarm { [weak client] in client?.questions[token] = nil }
        alarm.set(after: OpeningClient.questionTime)
        client.questions[token] = .init(reader: reader, openingType: type, key: key, alarm: alarm)
        session.push(
            WrittenMessage("ASK_OPEN") {
                $0.member("token", token)
                $0.member("reader", reader.id)
                $0.member("openingType", type.name)
                $0.member("expiresMs", OpeningClient.questionTime)
            }
        )
    }

    /// Whether an opening of this reader would not be refused because of others, of the client or of its adapter.
    private func hasRoom(for reader: DoorReader, _ client: OpeningClient) -> Bool {
        guard let opener, let adapter = radio?.openingAdapter(for: reader) else { return true }
        return client.openings.count < OpeningClient.mostOpenings && openingsByAdapter[adapter] == nil
            && opener.isFree(adapter)
    }

    /// Notes the end of an opening.
    private func openingEnded(on adapter: Int) {
        guard let count = openingsByAdapter[adapter] else { return }
        openingsByAdapter[adapter] = count > 1 ? count - 1 : nil
    }

    /// Starts an opening. Its further states and its result follow as messages.
    /// - Returns: the first state, or the result if the reader cannot be opened.
    private func open(
        _ reader: DoorReader,
        _ type: OpeningType,
        _ keyID: String?,
        for session: Session
    ) -> any Message {
        func refused(_ status: OpeningStatus, _ reason: Phrase) -> OpeningResultMessage {
            OpeningResultMessage(reader: reader.id, result: OpeningResult(status, reason: reason))
        }
        guard DoorDriver.exists(for: reader.profile) else {
            let profile = reader.profile.rawValue
            return refused(.openingTypeNotSupported, "badged has no driver for readers of the profile \(profile)")
        }
        if let radio, reader.coolsDown(at: radio.now) { return refused(.busy, "the reader was opened just now") }
        guard let opener else {
            return refused(.bluetoothCommunicationFailed, "badged runs without connections to readers")
        }
        guard let credentials, let uid = session.uid else {
            return refused(.keyNotFound, "badged has no key store, and so no key for PKOC readers")
        }
        let client = client(of: session)
        guard client.openings.count < OpeningClient.mostOpenings else {
            return refused(.busy, "this client opens \(OpeningClient.mostOpenings) readers already")
        }
        guard let radio, let adapter = radio.openingAdapter(for: reader) else {
            return refused(
                .bluetoothCommunicationFailed,
                "no adapter of this computer may open readers: [ble] adapters in badged.conf"
            )
        }
        let token = nextToken()
        let (id, address) = (reader.id, reader.address)
        let timeouts = client.timeouts
        client.began(reader)
        openingsByAdapter[adapter, default: 0] += 1
        client.openings[token] = Task { @Loop [weak self, weak session] in
            let begun = Loop.now
            var result: OpeningResult
            do throws(Failure) {
                let found = try await Self.credentials(of: uid, keyID, credentials)
                result = await opener.open(address, adapter: adapter, found, timeouts) { state in
                    // The first state is in the answer.
                    guard state != .connecting else { return }
                    session?.push(OpeningMessage(token: token, reader: id, openingType: type, state: state))
                }
            } catch {
                if error.cause != nil { session?.log(.warning, "\(id) is not opened: \(error.logText)") }
                result = OpeningResult(.keyNotFound, reason: error.message)
            }
            if result.status == .success, let used = result.key { await credentials.used(uid: uid, keyID: used) }
            guard let self else { return }
            openingEnded(on: adapter)
            let duration = Loop.now - begun
            report(result, of: id, by: type, uid, duration)
            guard let session else { return }
            client.openings[token] = nil
            // Only the loss of the permission cancels an opening whose client is still there.
            if Task.isCancelled, result.status != .success {
                result = OpeningResult(result.status, reason: Workflow.denied)
            }
            if let radio = self.radio {
                client.ended(reader, at: radio.now)
                if result.status == .success { radio.tracker.opened(reader, at: radio.now) }
            }
            session.log(.notice, "\(session.name): \(result.logText(of: id))", reader: id)
            session.push(
                OpeningResultMessage(token: token, reader: id, result: result, duration: duration)
            )
        }
        return OpeningMessage(token: token, reader: id, openingType: type, state: .connecting)
    }

    /// Tells the clients that watch openings of one that has ended.
    private func report(
        _ result: OpeningResult,
        of reader: String,
        by type: OpeningType,
        _ uid: UInt32,
        _ duration: Milliseconds
    ) {
        openingCount += 1
        countedOpenings.add(result.status.rawValue, result.decision.rawValue)
        openingTimes.add(Double(duration) / 1000)
        let (number, time) = (openingCount, Loop.wallClock)
        let message = WrittenMessage("OPENING_REPORT") { object in
            object.member("number", number)
            object.member("time", time)
            object.member("reader", reader)
            object.member("openingType", type.name)
            object.member("status", result.status.rawValue)
            object.member("accessDecision", result.decision.rawValue)
            object.member("durationMs", duration)
            object.member("key", result.key)
            object.member("user", uid)
        }
        for watcher in openingWatchers.values { watcher.push(message) }
    }

    private static func credentials(
        of uid: UInt32,
        _ keyID: String?,
        _ provider: any CredentialProvider
    ) async throws(Failure) -> [DoorCredential] {
        let found = try await provider.credentials(uid: uid, keyID: keyID)
        let wanted: Phrase = keyID.map { Phrase(verbatim: $0) } ?? "for PKOC readers"
        guard !found.isEmpty else {
            throw Failure(.init("KeyNotFound"), "there is no active key \(wanted), or it has expired")
        }
        return found
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
}

extension OpeningResult {
    /// What the log says of an opening. The decision is that of the reader, which cannot prove it.
    fileprivate func logText(of reader: String) -> String {
        guard status == .success else {
            return "opening \(reader) failed: \(status.rawValue)\(reason.map { ". \($0)" } ?? "")"
        }
        return switch decision {
        case .granted: "\(reader) grants access"
        case .denied: "\(reader) denies access"
        case .unknown: "\(reader) does not say whether the door opens"
        }
    }
}

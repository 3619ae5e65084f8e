// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EService
import Readers
import ReadersVirtual
import Scanners
import Secrets
import Text
import Wire
import Workflows

/// What each command does. docs/protocol.md, Commands.
extension Session {
    func handle(_ line: UnsafeRawBufferPointer) {
        let command: Command
        do throws(JSONError) {
            command = try Command(scanning: line)
        } catch {
            return answer(.invalid(error.message), nil)
        }
        let request = command.request
        guard let text = command.name else { return answer(.invalid("Command cannot be undefined"), request) }
        guard let name = CommandName(rawValue: text), level >= name.minimumLevel else {
            return answer(.unknownCommand(text), request)
        }
        guard permissions.contains(name.permission) else { return answer(.accessDenied(command: text), request) }
        if !perform(name, command, request) { answer(.badState(command: text), request) }
    }

    /// False when the command does not fit the moment.
    private func perform(_ name: CommandName, _ command: Command, _ request: UnsafeRawBufferPointer?) -> Bool {
        switch name {
        case .getInfo: answer(.info(server.info), request)
        case .getAPILevel: answer(.apiLevel(current: level, withAvailable: true, error: nil), request)
        case .setAPILevel: setAPILevel(command, request)
        case .getStatus:
            answer(.status(workflow: workflow?.name, progress: workflow?.progress, state: workflow?.state), request)
        case .getReader: getReader(command, request)
        case .getReaderList: answer(.readerList(server.registry.readers.map { readerState($0.name) }), request)
        case .getHealth: getHealth(request)
        case .runAuth: return runAuth(command, request)
        case .setUserInterface: setUserInterface(command, request)
        case .activate: return activate(command, request)
        case .getAccessRights: return getAccessRights(request)
        case .setAccessRights: return setAccessRights(command, request)
        case .getCertificate: return getCertificate(request)
        case .accept: return accept()
        case .runChangePIN: return runChangePIN(command, request)
        case .setPIN:
            // Five digits are a transport PIN, good for nothing but its change.
            return setSecret(.enterPIN, command, request, digits: workflow?.name == .auth ? 6...6 : 5...6)
        case .setNewPIN: return setSecret(.enterNewPIN, command, request, digits: 6...6)
        case .setCAN: return setSecret(.enterCAN, command, request, digits: 6...6)
        case .setPUK: return setSecret(.enterPUK, command, request, digits: 10...10)
        case .setCard: return setCard(command, request)
        case .startScan: startScan(command, request)
        case .stopScan: stopScan(request)
        case .getScan: answer(.door(.scan(scanState())), request)
        case .getDoorReaderList: getDoorReaderList(command, request)
        case .getClosestDoorReader: getClosestDoorReader(command, request)
        case .cancel:
            guard let workflow else { return false }
            workflow.cancel()
        case .continueWorkflow:
            guard let workflow, workflow.state == .pause else { return false }
            workflow.continueAfterPause()
        }
        return true
    }

    // MARK: Level, readers, health

    private func setAPILevel(_ command: Command, _ request: UnsafeRawBufferPointer?) {
        var error: String?
        switch command.int("level") {
        case .missing: error = "Level cannot be undefined"
        case .invalid: error = "Invalid level"
        case .value(let number):
            if let wanted = number.flatMap(APILevel.init(rawValue:)) {
                level = wanted
                // Below level 3 there is no PAUSE, so nobody would end it.
                if level < .three, let workflow, workflow.state == .pause { workflow.continueAfterPause() }
            } else {
                error = "Unknown level"
            }
        }
        answer(.apiLevel(current: level, withAvailable: false, error: error), request)
    }

    private func getReader(_ command: Command, _ request: UnsafeRawBufferPointer?) {
        switch command.string("name") {
        case .missing: answer(.readerRefused(error: "Name cannot be undefined"), request)
        case .invalid: answer(.readerRefused(error: "Invalid name"), request)
        case .value(let name): answer(.reader(readerState(name)), request)
        }
    }

    private func getHealth(_ request: UnsafeRawBufferPointer?) {
        let request = request.map { Array($0) }
        deferLines { [self] in
            let checks = await server.registry.currentHealth()
            let radio = await server.radio?.checks() ?? []
            let lines =
                checks.map { HealthLine(name: $0.name, ok: $0.ok, advice: $0.advice) }
                + radio.map { HealthLine(name: $0.name, ok: $0.ok, advice: $0.advice, errorAgo: $0.errorAgo) }
            answer(.health(lines), toCopied: request)
        }
    }

    func answer(_ message: Message, toCopied request: [UInt8]?) {
        guard let request else { return answer(message, nil) }
        request.withUnsafeBytes { answer(message, $0) }
    }

    // MARK: Workflow

    private func runChangePIN(_ command: Command, _ request: UnsafeRawBufferPointer?) -> Bool {
        guard workflow == nil else { return false }
        var readerName: String?
        switch command.string("reader") {
        case .missing: break
        case .invalid:
            answer(.changePINRefused(error: "Invalid name"), request)
            return true
        case .value(let name): readerName = name
        }
        if case .value(let flag) = command.bool("status") { wantsStatus = flag }
        let running = RunningWorkflow(.changePIN, self)
        workflow = running
        push(.changePINStarted)
        let changePIN = ChangePIN(server.registry, running, readerName: readerName, now: server.now)
        running.start { [self] in
            let result = await changePIN.run()
            await running.takeCardsBack()
            server.log(.info, "\(name): CHANGE_PIN ended, \(result.reason?.rawValue ?? "success")")
            push(.changePINEnded(success: result.success, reason: result.reason?.rawValue))
            workflowEnded()
        }
        return true
    }

    /// SET_PIN and its like. A wrong value is answered and never reaches the card.
    private func setSecret(
        _ state: WaitingState,
        _ command: Command,
        _ request: UnsafeRawBufferPointer?,
        digits: ClosedRange<Int>
    ) -> Bool {
        guard let workflow, workflow.state == state, let (number, reader) = workflow.question else { return false }
        switch command.int("question") {
        case .missing: break
        // Typed for a card that has gone meanwhile: the question that is open now is about another stay.
        case .value(let meant): if meant != number { return false }
        case .invalid: return false
        }
        func refuse(_ error: String) {
            answer(.enter(state, error: error, question: number, reader: readerState(reader.name)), request)
        }
        if reader.description.hasKeypad {
            if command.isPresent("value") { refuse("Value cannot be defined") } else { workflow.answer(nil) }
            return true
        }
        switch command.secret("value") {
        case .missing: refuse("Value cannot be undefined")
        case .invalid: refuse("Invalid value")
        case .value(let secret):
            let isValid = secret.withBytes { value in
                digits.contains(value.count) && value.allSatisfy { (0x30...0x39).contains($0) }
            }
            if isValid {
                workflow.answer(SecretBox(secret))
            } else if digits.count == 1 {
                refuse("You must provide \(digits.lowerBound) digits")
            } else {
                refuse("You must provide \(digits.lowerBound) - \(digits.upperBound) digits")
            }
        }
        return true
    }

    private func setCard(_ command: Command, _ request: UnsafeRawBufferPointer?) -> Bool {
        guard workflow?.state == .insertCard else { return false }
        func refuse(_ error: String) { answer(.insertCard(error: error, reader: nil), request) }
        let readerName: String
        switch command.string("name") {
        case .missing:
            refuse("Name cannot be undefined")
            return true
        case .invalid:
            refuse("Invalid name")
            return true
        case .value(let name): readerName = name
        }
        guard let reader = server.registry[readerName] else {
            refuse("Unknown reader name")
            return true
        }
        guard reader.description.takesCards else {
            refuse("Card is not insertable")
            return true
        }
        if readerState(readerName).attached?.busy == true {
            // Its card will leave with the other client's workflow, so this one would never come to be used.
            refuse(CardObstacle.busy.text(reader: readerName))
            return true
        }
        var objects: [String: JSON] = [:]
        for (key, field) in [("simulator", command.object("simulator")), ("card", command.object("card"))] {
            switch field {
            case .missing: break
            case .invalid:
                refuse("Parameter '\(key)' is invalid")
                return true
            case .value(let object): objects[key] = object
            }
        }
        insert(reader, simulator: objects["simulator"], card: objects["card"], request)
        return true
    }

    private func insert(_ reader: Reader, simulator: JSON?, card: JSON?, _ request: UnsafeRawBufferPointer?) {
        var description: VirtualCardDescription?
        if simulator != nil || card != nil {
            do throws(CardFileError) {
                description = try CardFile.description(simulator: simulator, card: card)
            } catch {
                let parameter = error.text.hasPrefix("card") ? "card" : "simulator"
                return answer(
                    .insertCard(error: "Parameter '\(parameter)' is invalid: \(error.text)", reader: nil),
                    request
                )
            }
        }
        let request = request.map { Array($0) }
        let running = workflow
        deferLines { [self] in
            do throws(CardShelfError) {
                try await server.registry.insert(description, into: reader, for: running.map { ObjectIdentifier($0) })
                await running?.hasPutCardIn()
            } catch {
                switch error {
                case .occupied:
                    // As with the SDK's simulator a card that is in already stays, and nothing is said.
                    server.log(.info, "\(name): SET_CARD ignored, a card is in '\(reader.name)' already")
                case .unknownReader:
                    answer(.insertCard(error: "Unknown reader name", reader: nil), toCopied: request)
                case .invalid(let text):
                    let error = "Parameter 'simulator' is invalid: \(text)"
                    answer(.insertCard(error: error, reader: nil), toCopied: request)
                }
            }
        }
    }
}

extension CommandName {
    /// Below it the command is unknown.
    fileprivate var minimumLevel: APILevel {
        switch self {
        case .getStatus, .setCard: .two
        case .activate, .setUserInterface, .getInfo, .getAPILevel, .setAPILevel, .getReader, .getReaderList, .getHealth,
            .runAuth, .getAccessRights,
            .setAccessRights, .getCertificate, .accept, .runChangePIN, .setPIN, .setNewPIN, .setCAN, .setPUK, .cancel,
            .continueWorkflow, .startScan, .stopScan, .getScan, .getDoorReaderList, .getClosestDoorReader:
            .one
        }
    }

    fileprivate var permission: Permissions {
        switch self {
        case .getInfo, .getAPILevel, .setAPILevel, .getStatus: []
        case .getReader, .getReaderList, .getHealth: .readers
        case .activate: .activate
        case .setUserInterface, .runAuth, .getAccessRights, .setAccessRights, .getCertificate, .accept, .runChangePIN,
            .setPIN,
            .setNewPIN, .setCAN, .setPUK, .setCard, .cancel, .continueWorkflow:
            .cards
        case .startScan, .stopScan, .getScan, .getDoorReaderList, .getClosestDoorReader: .scan
        }
    }
}

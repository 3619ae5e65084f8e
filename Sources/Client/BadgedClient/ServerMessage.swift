// SPDX-License-Identifier: Apache-2.0
import Text
import Wire

/// What badged says. docs/protocol.md, Messages.
public enum ServerMessage: Sendable, Equatable {
    case info(DaemonInfo)
    /// `error`: the level asked for was refused, `current` still holds.
    case apiLevel(APILevels, error: String?)
    case status(WorkflowStatus)
    /// A reader or the card in it is new, has changed or has gone; or the answer to GET_READER.
    case reader(Reader)
    case readerRefused(error: String)
    case readerList([Reader])
    case health([HealthCheck])
    /// A card is needed; `error` says why the one in `reader` cannot be used, or why SET_CARD was refused.
    case insertCard(error: String?, reader: String?)
    /// ENTER_PIN, ENTER_CAN, ENTER_NEW_PIN, ENTER_PUK. With `error` the last value was not even given to the card.
    case enter(SecretQuestion)
    /// The card slips; `cause` is `BadCardPosition`.
    case pause(cause: String)
    /// A service asks; with `error` the last SET_ACCESS_RIGHTS was refused.
    case accessRights(AccessRights, error: String?)
    case certificate(ServiceCertificate)
    case authStarted
    case authRefused(error: String)
    case authEnded(AuthenticationResult)
    case changePINStarted
    case changePINRefused(error: String)
    /// `reason`: a name from the list of failure reasons.
    case changePINEnded(success: Bool, reason: String?)
    case scan(ScanStatus)
    /// A door reader has appeared or changed.
    case doorReader(DoorReader)
    case doorReaderLost(id: String)
    /// One advertisement, of a reader or not.
    case advertisement(Advertisement)
    /// Strongest first.
    case doorReaderList([DoorReader])
    /// nil: there is none, for `reason`.
    case closestDoorReader(DoorReader?, reason: String?)
    case doorReaderRefused(error: String)
    /// Does this connection speak with the user for browsers? With `error` SET_USER_INTERFACE was refused.
    case userInterface(active: Bool, error: String?)
    /// A browser wants this program to show itself, or a part of it.
    case showUI(module: String)
    case badState(command: String)
    case accessDenied(command: String)
    case unknownCommand(String)
    case invalid(error: String)
    case internalError(error: String)
    /// A name that this library does not know; `Event.json` has all of it.
    case unknown(name: String)
    /// A known name whose `member` is missing or of another type than it should be.
    case unreadable(name: String, member: String)
}

extension ServerMessage {
    /// Reads one message; whatever it is, a value comes out.
    init(_ json: JSON) {
        guard let name = json["msg"]?.string else {
            self = .unreadable(name: "", member: "msg")
            return
        }
        let error = json["error"]?.string
        func needed(_ member: String, _ make: (String) -> ServerMessage) -> ServerMessage {
            json[member]?.string.map(make) ?? .unreadable(name: name, member: member)
        }
        switch name {
        case "INFO":
            self = DaemonInfo(json).map(ServerMessage.info) ?? .unreadable(name: name, member: "VersionInfo")
        case "API_LEVEL":
            guard let current = json["current"]?.int else {
                self = .unreadable(name: name, member: "current")
                return
            }
            let available = json["available"]?.array ?? []
            self = .apiLevel(APILevels(current: current, available: available.compactMap(\.int)), error: error)
        case "STATUS":
            let (workflow, state) = (json["workflow"]?.string, json["state"]?.string)
            self = .status(WorkflowStatus(workflow: workflow, progress: json["progress"]?.int, state: state))
        case "READER":
            if let error {
                self = .readerRefused(error: error)
            } else {
                self = Reader(json).map(ServerMessage.reader) ?? .unreadable(name: name, member: "name")
            }
        case "READER_LIST":
            // API level 1 has the list under `reader`.
            let list = (json["readers"] ?? json["reader"])?.array
            self = list.map { .readerList($0.compactMap(Reader.init)) } ?? .unreadable(name: name, member: "readers")
        case "HEALTH":
            let checks = json["checks"]?.array
            self =
                checks.map { .health($0.compactMap(HealthCheck.init)) } ?? .unreadable(name: name, member: "checks")
        case "INSERT_CARD": self = .insertCard(error: error, reader: json["reader"]?.string)
        case "ENTER_PIN", "ENTER_CAN", "ENTER_NEW_PIN", "ENTER_PUK":
            guard let kind = SecretKind(rawValue: String(name.dropFirst(6))),
                let reader = json["reader"].flatMap(Reader.init)
            else {
                self = .unreadable(name: name, member: "reader")
                return
            }
            let number = json["question"]?.int
            self = .enter(SecretQuestion(kind: kind, reader: reader, error: error, number: number))
        case "PAUSE": self = needed("cause") { .pause(cause: $0) }
        case "ACCESS_RIGHTS":
            self = AccessRights(json).map { .accessRights($0, error: error) } ?? .unreadable(name: name, member: "chat")
        case "CERTIFICATE":
            self =
                ServiceCertificate(json).map(ServerMessage.certificate)
                ?? .unreadable(name: name, member: "description")
        case "AUTH":
            if let error {
                self = .authRefused(error: error)
            } else if json["result"] != nil {
                self =
                    AuthenticationResult(json).map(ServerMessage.authEnded)
                    ?? .unreadable(name: name, member: "result")
            } else {
                self = .authStarted
            }
        case "CHANGE_PIN":
            if let error {
                self = .changePINRefused(error: error)
            } else if let success = json["success"] {
                self =
                    success.bool.map { .changePINEnded(success: $0, reason: json["reason"]?.string) }
                    ?? .unreadable(name: name, member: "success")
            } else {
                self = .changePINStarted
            }
        case "SCAN": self = ScanStatus(json).map(ServerMessage.scan) ?? .unreadable(name: name, member: "wanted")
        case "DOOR_READER":
            self =
                json["reader"].flatMap(DoorReader.init).map(ServerMessage.doorReader)
                ?? .unreadable(name: name, member: "reader")
        case "DOOR_READER_LOST":
            self = json["id"]?.string.map { .doorReaderLost(id: $0) } ?? .unreadable(name: name, member: "id")
        case "ADVERT":
            self = Advertisement(json).map(ServerMessage.advertisement) ?? .unreadable(name: name, member: "data")
        case "DOOR_READER_LIST", "CLOSEST_DOOR_READER":
            if let error {
                self = .doorReaderRefused(error: error)
            } else if name == "CLOSEST_DOOR_READER" {
                self = .closestDoorReader(json["reader"].flatMap(DoorReader.init), reason: json["reason"]?.string)
            } else {
                self =
                    json["readers"]?.array.map { .doorReaderList($0.compactMap(DoorReader.init)) }
                    ?? .unreadable(name: name, member: "readers")
            }
        case "USER_INTERFACE":
            self =
                json["active"]?.bool.map { .userInterface(active: $0, error: error) }
                ?? .unreadable(name: name, member: "active")
        case "SHOW_UI": self = needed("module") { .showUI(module: $0) }
        case "BAD_STATE": self = needed("error") { .badState(command: $0) }
        case "ACCESS_DENIED": self = needed("error") { .accessDenied(command: $0) }
        case "UNKNOWN_COMMAND": self = needed("error") { .unknownCommand($0) }
        case "INVALID": self = needed("error") { .invalid(error: $0) }
        case "INTERNAL_ERROR": self = needed("error") { .internalError(error: $0) }
        default: self = .unknown(name: name)
        }
    }
}

extension Reader {
    init?(_ json: JSON) {
        guard let name = json["name"]?.string else { return nil }
        self.init(
            name: name,
            isAttached: json["attached"]?.bool ?? false,
            isInsertable: json["insertable"]?.bool ?? false,
            hasKeypad: json["keypad"]?.bool ?? false,
            isBusy: json["busy"]?.bool ?? false,
            card: json["card"].flatMap(Card.init)
        )
    }
}

extension Card {
    init?(_ json: JSON) {
        guard json.members != nil else { return nil }
        guard let retryCounter = json["retryCounter"]?.int else {
            self = .unknown
            return
        }
        self = .eid(
            retryCounter: retryCounter,
            deactivated: json["deactivated"]?.bool ?? false,
            inoperative: json["inoperative"]?.bool ?? false
        )
    }
}

extension HealthCheck {
    init?(_ json: JSON) {
        guard let name = json["name"]?.string, let isOK = json["ok"]?.bool else { return nil }
        self.init(
            name: name,
            isOK: isOK,
            advice: json["advice"]?.string,
            errorAge: json["errorAgo"]?.int.map { .milliseconds($0) }
        )
    }
}

extension DaemonInfo {
    init?(_ json: JSON) {
        guard let version = json["VersionInfo"], let name = version["Name"]?.string else { return nil }
        let badged = json["badged"]
        func names(_ member: String) -> [String] { badged?[member]?.array?.compactMap(\.string) ?? [] }
        self.init(
            name: name,
            version: version["Implementation-Version"]?.string ?? "",
            protocolVersion: badged?["protocol"]?.int,
            drivers: names("drivers"),
            scanners: names("scanners")
        )
    }
}

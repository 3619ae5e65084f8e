// SPDX-License-Identifier: Apache-2.0
import Text

/// What a door panel shows at its reader: DOOR_PANEL. docs/protocol/panels.md.
public struct DoorPanel: ServerMessage, NamedMessage {
    static let names = ["DOOR_PANEL"]

    /// The name in osdp.conf.
    public var panel: String
    /// `closed`, `silent`, `refused`, `clear`, `installing` or `secure`.
    public var link: String
    public var leds: [LED]
    /// The lines of its display.
    public var text: [String]
    public var outputs: [Bool]
    /// A sound that was ordered now.
    public var beep: Beep?

    /// A colour, or two that take turns.
    public struct LED: Sendable, Equatable {
        /// `black`, `red`, `green`, `amber`, `blue`, `magenta`, `cyan` or `white`.
        public var color: String
        /// nil: the LED does not blink.
        public var otherColor: String?
        /// Milliseconds of each colour.
        public var on = 0
        public var off = 0
    }

    /// A sound in milliseconds; `count` 0: until the next one.
    public struct Beep: Sendable, Equatable {
        public var on: Int
        public var off: Int
        public var count: Int
    }

    init(_ json: JSON) throws(Malformed) {
        panel = try json.required("panel", as: \.string)
        link = try json.required("link", as: \.string)
        leds = (json["leds"]?.array ?? []).map { led in
            LED(
                color: led["color"]?.string ?? "black",
                otherColor: led["otherColor"]?.string,
                on: led["on"]?.int ?? 0,
                off: led["off"]?.int ?? 0
            )
        }
        text = json["text"]?.strings ?? []
        outputs = json["outputs"]?.array?.compactMap(\.bool) ?? []
        beep = json["beep"].map {
            Beep(on: $0["on"]?.int ?? 0, off: $0["off"]?.int ?? 0, count: $0["count"]?.int ?? 0)
        }
    }
}

/// Whether this client receives `DoorPanel`: DOOR_PANELS.
public struct DoorPanelStatus: ServerMessage, NamedMessage {
    static let names = ["DOOR_PANELS"]

    public var isWatching: Bool

    init(_ json: JSON) throws(Malformed) { isWatching = try json.required("watching", as: \.bool) }
}

extension DaemonConnection {
    /// START_DOOR_PANELS. What each door panel shows now, and each change, arrives as the event `DoorPanel`.
    @discardableResult
    public func startDoorPanels() async throws(ClientError) -> DoorPanelStatus { try await ask("START_DOOR_PANELS") }

    /// STOP_DOOR_PANELS.
    @discardableResult
    public func stopDoorPanels() async throws(ClientError) -> DoorPanelStatus { try await ask("STOP_DOOR_PANELS") }
}

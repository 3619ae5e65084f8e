// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Scanners
import Server
import Text

struct ScanMessage: Message {
    static let name: StaticString = "SCAN"
    let scan: ScanState

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let error = scan.error { object.member("error", error) }
        if let errorAgo = scan.errorAgo { object.member("errorAgo", errorAgo) }
        object.member("wanted", scan.isWanted)
        object.member("radio", scan.isListening)
        object.member("backend", scan.backend)
        object.array("adapters", scan.adapters) { array, adapter in
            array.object {
                $0.member("name", adapter.name)
                $0.member("address", adapter.address)
                $0.member("powered", adapter.isPowered)
            }
        }
        object.member("lastAdvertAgo", scan.lastAdvertAgo)
    }
}

/// The scan as one client sees it.
struct ScanState: Sendable {
    /// Whether this client scans.
    var isWanted = false
    /// Whether the radio listens, as the system reports.
    var isListening = false
    var backend: String?
    var adapters: [RadioAdapter] = []
    /// Milliseconds since the last advertisement of this scan.
    var lastAdvertAgo: Int64?
    var error: Phrase?
    /// Milliseconds since `error` began.
    var errorAgo: Int64?
}

struct DoorReaderListMessage: Message {
    static let name: StaticString = "DOOR_READER_LIST"
    let readers: [DoorReaderState]

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.array("readers", readers) { array, reader in array.object { reader.write(to: &$0) } }
    }
}

enum ClosestDoorReaderMessage: Message {
    static let name: StaticString = "CLOSEST_DOOR_READER"

    case reader(DoorReaderState)
    /// There is no closest reader, for this reason.
    case none(String)

    func write(to object: inout JSONWriter, _ level: APILevel) {
        switch self {
        case .reader(let reader): object.object("reader") { reader.write(to: &$0) }
        case .none(let reason):
            object.member("reader", JSON.null)
            object.member("reason", reason)
        }
    }
}

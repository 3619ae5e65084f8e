// SPDX-License-Identifier: Apache-2.0
import Text

/// The commands about door readers. docs/protocol/door-readers.md.
extension DaemonConnection {
    /// START_SCAN. Readers arrive as the events `DoorReader` and `DoorReaderLost`, changes of the scan as `ScanStatus`,
    /// until `stopScan` or the end of the connection. A second call replaces the options.
    ///
    /// - Returns: the state of the scan. Its `error` says why the radio does not work now; badged goes on trying.
    /// - Throws: a refusal. Then nothing has changed.
    @discardableResult
    public func startScan(_ options: ScanOptions = ScanOptions()) async throws(ClientError) -> ScanStatus {
        try await ask("START_SCAN", options.members)
    }

    /// STOP_SCAN.
    @discardableResult
    public func stopScan() async throws(ClientError) -> ScanStatus { try await ask("STOP_SCAN") }

    /// GET_SCAN.
    public func scanStatus() async throws(ClientError) -> ScanStatus { try await ask("GET_SCAN") }

    /// GET_DOOR_READER_LIST: the readers of the scan, the strongest first. `activeOnly`: without those that are lost.
    public func doorReaders(activeOnly: Bool = true) async throws(ClientError) -> [DoorReader] {
        let list: DoorReaderList = try await ask("GET_DOOR_READER_LIST", [.init("activeOnly", .bool(activeOnly))])
        return list.readers
    }

    /// GET_CLOSEST_DOOR_READER: the closest reader for a way of opening such as `motion`.
    public func closestDoorReader(for openingType: String) async throws(ClientError) -> ClosestDoorReader {
        try await ask("GET_CLOSEST_DOOR_READER", [.init("openingType", .string(openingType))])
    }
}

/// The messages about door readers.
let doorReaderMessages: [any NamedMessage.Type] = [
    ScanStatus.self, DoorReader.self, DoorReaderLost.self, DoorReaderList.self, ClosestDoorReader.self,
    Advertisement.self, DoorOpening.self, DoorOpeningResult.self, DoorOpeningQuestion.self, DoorOpeningTimeouts.self,
    AutomaticOpening.self, DoorOpeningReport.self, OpeningsStatus.self,
]

// SPDX-License-Identifier: Apache-2.0
import Text
import Wire

/// The commands about door readers. docs/protocol.md, Door readers.
extension DaemonConnection {
    /// START_SCAN. Readers come as the events `doorReader` and `doorReaderLost`, changes of the scan as `scan`, until
    /// `stopScan` or the end of the connection. A second call replaces the options.
    ///
    /// - Returns: the scan; its `error` says what is in the way for now. badged goes on trying.
    /// - Throws: a refusal; nothing has changed then.
    @discardableResult
    public func startScan(_ options: ScanOptions = ScanOptions()) async throws(ClientError) -> ScanStatus {
        try await scan("START_SCAN", options.members)
    }

    /// STOP_SCAN.
    @discardableResult
    public func stopScan() async throws(ClientError) -> ScanStatus { try await scan("STOP_SCAN") }

    /// GET_SCAN.
    public func scanStatus() async throws(ClientError) -> ScanStatus { try await scan("GET_SCAN") }

    private func scan(_ command: String, _ members: [JSON.Member] = []) async throws(ClientError) -> ScanStatus {
        try await ask(command, members) {
            if case .scan(let status) = $0, !status.isRefusal { status } else { nil }
        }
    }

    /// GET_DOOR_READER_LIST, strongest first; empty for who does not scan. `activeOnly`: none that are lost.
    public func doorReaders(activeOnly: Bool = true) async throws(ClientError) -> [DoorReader] {
        try await ask("GET_DOOR_READER_LIST", [.init("activeOnly", .bool(activeOnly))]) {
            if case .doorReaderList(let readers) = $0 { readers } else { nil }
        }
    }

    /// GET_CLOSEST_DOOR_READER, for a way of opening such as `motion`.
    public func closestDoorReader(for openingType: String) async throws(ClientError) -> ClosestDoorReader {
        try await ask("GET_CLOSEST_DOOR_READER", [.init("openingType", .string(openingType))]) {
            switch $0 {
            case .closestDoorReader(let reader?, _): .reader(reader)
            case .closestDoorReader(nil, let reason): .nobody(reason: reason ?? "none")
            default: nil
            }
        }
    }
}

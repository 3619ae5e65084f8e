// SPDX-License-Identifier: Apache-2.0
import Text

/// Messages about door readers. docs/protocol.md, Door readers.
package enum DoorMessage: Sendable, Equatable {
    case scan(ScanState)
    case list([DoorReaderState])
    /// `reason` where there is no reader; `error` where the question was no good.
    case closest(DoorReaderState?, reason: String?)
    case refused(Question, error: String)
    case reader(DoorReaderState)
    case lost(id: String)
    case advert(AdvertState)

    /// A question that has been refused.
    package enum Question: Sendable { case list, closest }

    package var name: StaticString {
        switch self {
        case .scan: "SCAN"
        case .list, .refused(.list, _): "DOOR_READER_LIST"
        case .closest, .refused(.closest, _): "CLOSEST_DOOR_READER"
        case .reader: "DOOR_READER"
        case .lost: "DOOR_READER_LOST"
        case .advert: "ADVERT"
        }
    }

    /// Members that sort before `msg`.
    func writeBeforeMessage(to writer: inout JSONWriter) {
        switch self {
        case .scan(let state): state.writeBeforeMessage(to: &writer)
        case .lost(let id): writer.member("id", id)
        case .advert(let advert): advert.writeBeforeMessage(to: &writer)
        case .refused(_, let error): writer.member("error", error)
        case .list, .closest, .reader: break
        }
    }

    /// Members that sort between `msg` and `request`.
    func writeBeforeRequest(to writer: inout JSONWriter) {
        switch self {
        case .scan(let state): writer.member("radio", state.isListening)
        case .list(let readers):
            writer.key("readers")
            writer.beginArray()
            for reader in readers { reader.write(to: &writer) }
            writer.endArray()
        case .closest(let reader, let reason):
            writer.key("reader")
            if let reader { reader.write(to: &writer) } else { writer.null() }
            if let reason { writer.member("reason", reason) }
        case .reader(let reader):
            writer.key("reader")
            reader.write(to: &writer)
        case .lost, .refused, .advert: break
        }
    }

    /// Members that sort after `request`.
    func writeAfterRequest(to writer: inout JSONWriter) {
        switch self {
        case .scan(let state): writer.member("wanted", state.isWanted)
        case .advert(let advert):
            writer.member("rssi", advert.rssi.map(Int.init))
            writer.member("scanResponse", advert.isScanResponse)
        case .list, .closest, .refused, .reader, .lost: break
        }
    }
}

/// SCAN.
package struct ScanState: Sendable, Equatable {
    package struct Adapter: Sendable, Equatable {
        package var address, name: String
        package var isPowered: Bool

        package init(address: String, name: String, isPowered: Bool) {
            (self.address, self.name, self.isPowered) = (address, name, isPowered)
        }
    }

    /// This client scans.
    package var isWanted = false
    /// The radio listens, as far as the system says.
    package var isListening = false
    package var backend: String?
    package var adapters: [Adapter] = []
    /// Milliseconds since anything was heard in this scan.
    package var lastAdvertAgo: Int64?
    package var error: String?
    /// Milliseconds since it is so.
    package var errorAgo: Int64?

    package init() {}

    fileprivate func writeBeforeMessage(to writer: inout JSONWriter) {
        writer.key("adapters")
        writer.beginArray()
        for adapter in adapters {
            writer.beginObject()
            writer.member("address", adapter.address)
            writer.member("name", adapter.name)
            writer.member("powered", adapter.isPowered)
            writer.endObject()
        }
        writer.endArray()
        writer.key("backend")
        if let backend { writer.string(backend) } else { writer.null() }
        if let error { writer.member("error", error) }
        if let errorAgo { writer.member("errorAgo", Int(errorAgo)) }
        writer.member("lastAdvertAgo", lastAdvertAgo.map(Int.init))
    }
}

/// ADVERT: one advertisement as it was heard.
package struct AdvertState: Sendable, Equatable {
    package var adapter: String
    package var address: String
    package var addressType: String
    package var data: [UInt8]
    package var rssi: Int8?
    package var isScanResponse: Bool

    package init(
        adapter: String,
        address: String,
        addressType: String,
        data: [UInt8],
        rssi: Int8?,
        isScanResponse: Bool
    ) {
        (self.adapter, self.address, self.addressType) = (adapter, address, addressType)
        (self.data, self.rssi, self.isScanResponse) = (data, rssi, isScanResponse)
    }

    fileprivate func writeBeforeMessage(to writer: inout JSONWriter) {
        writer.member("adapter", adapter)
        writer.member("address", address)
        writer.member("addressType", addressType)
        writer.member("data", Hex.encode(data))
    }
}

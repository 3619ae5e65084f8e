// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Host
import ScannerMgmt
import Text

@Sendable func advertisingData(_ input: UnsafeRawBufferPointer) {
    let data = Array(input)
    var end = 0
    AdvertisingData.forEach(in: data.span) { _, value in
        require(value.lowerBound >= end && value.upperBound <= data.count, "a structure outside its data")
        end = value.upperBound
    }
    for encoding in RadioConfiguration.CodeEncoding.allCases {
        let facts = AdvertisementDecoder(codeEncoding: encoding).decode(data.span)
        if let code = facts.lockServiceCode {
            require(LockServiceCode.range.contains(code), "a code outside its range")
        }
        if let name = facts.name {
            require(!name.isEmpty && name.utf8.count <= 3 * AdvertisementDecoder.longestName, "a name too long")
        }
    }
}

/// Events for one tracker, each after its length, with a second of silence after each.
@Sendable func advertisingReports(_ input: UnsafeRawBufferPointer) {
    let bytes = Array(input)
    let tracker = ReaderTracker(capacity: 8)
    var shown: Set<Int> = []
    tracker.observer = { change, reader in
        switch change {
        case .appeared: require(shown.insert(reader.number).inserted, "appeared twice")
        case .updated: require(shown.contains(reader.number), "updated before it appeared")
        case .lost: require(shown.remove(reader.number) != nil, "lost before it appeared")
        }
    }
    var position = 0
    var now: Milliseconds = 0
    var fragments = FragmentAssembly()
    while position < bytes.count {
        let end = min(position + 1 + Int(bytes[position]), bytes.count)
        let event = bytes.span.extracting(position + 1..<max(end, position + 1))
        HCIEvent.forEachReport(in: event) { report, data in
            require(data.lowerBound >= 0 && data.upperBound <= event.count, "data outside its event")
            let adapter = Int(report.address.bits & 7)
            fragments.add(report, event.extracting(data), adapter: adapter) { report, data in
                require(data.count <= AdvertisingData.maximumLength, "an advertisement too long")
                tracker.receive(report, data, adapter: adapter, at: now)
            }
        }
        now += 1000
        tracker.sweep(at: now)
        require(tracker.readers.count <= 8, "the table grows without bound")
        position = max(end, position + 1)
    }
}

@Sendable func btsnoop(_ input: UnsafeRawBufferPointer) {
    let file = Array(input)
    do throws(Malformed) {
        _ = try BTSnoop.forEachEvent(in: file.span) { _, _, event in
            require(event.lowerBound >= 16 && event.upperBound <= file.count, "an event outside its file")
        }
    } catch {
        let isCapture = file.count >= 16 && file.starts(with: "btsnoop\0\0\0\0\u{1}".utf8)
        require(!isCapture || error.text != "no btsnoop file", "a capture is not recognized")
    }
}

@Sendable func managementEvent(_ input: UnsafeRawBufferPointer) {
    let packet = Array(input)
    switch ManagementEvent(packet.span) {
    case .deviceFound(_, _, let data):
        require(data.lowerBound >= 20 && data.upperBound <= packet.count, "data outside its packet")
    case .answer(_, _, _, let result): require(result.count <= packet.count - 9, "a result longer than its packet")
    case .indexAdded, .indexRemoved, .newSettings, .connected, .monitorRemoved, .suspended, .resumed, .other, nil: break
    }
}

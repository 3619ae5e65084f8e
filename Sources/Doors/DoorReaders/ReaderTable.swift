// SPDX-License-Identifier: GPL-3.0-or-later

/// The readers that a tracker remembers, by address, by identity and in the order of their last advertisement.
struct ReaderTable {
    /// Least recently seen first.
    private(set) var readers: [DoorReader] = []
    private var byAddress: [DeviceAddress: DoorReader] = [:]
    private var byIdentity: [ReaderIdentity: DoorReader] = [:]

    func reader(at address: DeviceAddress) -> DoorReader? { byAddress[address] }

    func reader(_ identity: ReaderIdentity) -> DoorReader? { byIdentity[identity] }

    mutating func append(_ reader: DoorReader) {
        readers.append(reader)
        byAddress[reader.address] = reader
        byIdentity[reader.identity] = reader
    }

    mutating func moveToEnd(_ reader: DoorReader) {
        // A reader that was seen recently is near the end.
        guard readers.last !== reader, let index = readers.lastIndex(where: { $0 === reader }) else { return }
        readers.remove(at: index)
        readers.append(reader)
    }

    mutating func change(_ reader: DoorReader, address: DeviceAddress) {
        byAddress[reader.address] = nil
        reader.address = address
        byAddress[address] = reader
    }

    mutating func change(_ reader: DoorReader, identity: ReaderIdentity) {
        byIdentity[reader.identity] = nil
        reader.identity = identity
        byIdentity[identity] = reader
    }

    mutating func remove(_ reader: DoorReader) {
        if let index = readers.firstIndex(where: { $0 === reader }) { readers.remove(at: index) }
        if byAddress[reader.address] === reader { byAddress[reader.address] = nil }
        if byIdentity[reader.identity] === reader { byIdentity[reader.identity] = nil }
    }
}

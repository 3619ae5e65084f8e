// SPDX-License-Identifier: GPL-3.0-or-later

/// The readers that a tracker remembers, by address, by identity and in the order of their last advertisement.
struct ReaderTable {
    /// Least recently seen first.
    private(set) var readers: [DoorReader] = []
    private var byAddress: [DeviceAddress: DoorReader] = [:]
    private var byIdentity: [ReaderIdentity: DoorReader] = [:]
    /// The readers with a changing address and a name, by name.
    private var byName: [String: [DoorReader]] = [:]

    func reader(at address: DeviceAddress) -> DoorReader? { byAddress[address] }

    func reader(_ identity: ReaderIdentity) -> DoorReader? { byIdentity[identity] }

    /// The reader with a changing address that has this profile and name, and whose codes do not differ.
    func reader(_ profile: ReaderProfile, codes: [Int], named name: String) -> DoorReader? {
        byName[name]?.first { Self.agree($0, profile, codes) }
    }

    /// Whether any reader with a changing address and a name has this profile, and codes that do not differ.
    func hasNamedReader(_ profile: ReaderProfile, codes: [Int]) -> Bool {
        byName.values.contains { $0.contains { Self.agree($0, profile, codes) } }
    }

    private static func agree(_ reader: DoorReader, _ profile: ReaderProfile, _ codes: [Int]) -> Bool {
        guard reader.profile == profile else { return false }
        let known = reader.lockServiceCodes
        return known.isEmpty || codes.isEmpty || known.contains(where: codes.contains)
    }

    mutating func append(_ reader: DoorReader) {
        insert(reader)
        byAddress[reader.address] = reader
        setIdentity(of: reader)
    }

    /// Inserts the reader after those that were seen before it, which is at the end or near it.
    private mutating func insert(_ reader: DoorReader) {
        let place = readers.lastIndex { $0.lastHeard <= reader.lastHeard }
        readers.insert(reader, at: place.map { $0 + 1 } ?? 0)
    }

    /// Must be called when an advertisement of the reader was received.
    mutating func reorder(_ reader: DoorReader) {
        // A reader that was seen recently is near the end.
        guard readers.last !== reader, let index = readers.lastIndex(where: { $0 === reader }) else { return }
        readers.remove(at: index)
        insert(reader)
    }

    mutating func change(_ reader: DoorReader, address: DeviceAddress) {
        byAddress[reader.address] = nil
        reader.address = address
        byAddress[address] = reader
    }

    mutating func change(_ reader: DoorReader, identity: ReaderIdentity) {
        removeIdentity(of: reader)
        reader.identity = identity
        setIdentity(of: reader)
    }

    mutating func remove(_ reader: DoorReader) {
        if let index = readers.firstIndex(where: { $0 === reader }) { readers.remove(at: index) }
        if byAddress[reader.address] === reader { byAddress[reader.address] = nil }
        removeIdentity(of: reader)
    }

    private mutating func setIdentity(of reader: DoorReader) {
        byIdentity[reader.identity] = reader
        if case .fingerprint(_, _, let name) = reader.identity { byName[name, default: []].append(reader) }
    }

    private mutating func removeIdentity(of reader: DoorReader) {
        if byIdentity[reader.identity] === reader { byIdentity[reader.identity] = nil }
        guard case .fingerprint(_, _, let name) = reader.identity else { return }
        byName[name]?.removeAll { $0 === reader }
        if byName[name]?.isEmpty == true { byName[name] = nil }
    }
}

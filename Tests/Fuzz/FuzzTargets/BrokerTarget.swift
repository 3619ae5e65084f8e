// SPDX-License-Identifier: GPL-3.0-or-later
import MQTT
import Text

/// What a broker sends to badged-mqtt: the first byte is the version. Bytes in one piece and bytes one by one give the
/// same packets, and what waits has a bound.
@Sendable func brokerPackets(_ input: UnsafeRawBufferPointer) {
    guard let version = input.first else { return }
    let bytes = Array(input.dropFirst())
    let whole = packets([bytes], isFive: version == 5)
    let parts = packets(bytes.map { [$0] }, isFive: version == 5)
    require(whole == parts, "the packets depend on how the bytes arrive")
}

private func packets(_ parts: [[UInt8]], isFive: Bool) -> [BrokerPacket] {
    var buffer = PacketBuffer(isFive: isFive)
    var found: [BrokerPacket] = []
    do throws(Malformed) {
        for part in parts {
            buffer.append(part)
            while let packet = try buffer.next() { found.append(packet) }
            require(buffer.count <= BrokerPacket.maximumSize + 5, "an unfinished packet is longer than allowed")
        }
    } catch {
        return found
    }
    return found
}

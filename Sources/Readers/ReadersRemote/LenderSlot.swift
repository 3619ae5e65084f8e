// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Readers
import RemoteIFD

/// A slot of a device, which is a reader here.
@Loop final class LenderSlot {
    /// The name of the reader.
    nonisolated let name: String
    /// The name for the device.
    let slot: String
    var description: ReaderDescription
    var insertion: Insertion?
    weak var link: LenderLink?

    init(_ status: IFDStatus, device: RemoteDevice, _ link: LenderLink) {
        // The fingerprint makes the name unique even if two devices have the same name.
        let name = "\(device.name) \(DeviceName.clean(status.slot)) (\(device.fingerprint.prefix(8)))"
        (self.name, slot, self.link) = (name, status.slot, link)
        description = ReaderDescription(
            name: name,
            hasKeypad: status.hasKeypad,
            hasExtendedLength: status.hasExtendedLength,
            isRemote: true
        )
    }
}

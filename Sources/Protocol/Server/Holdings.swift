// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Concurrency

/// The bytes that the daemon keeps for clients: lines, answers and events that wait, and what work is done for.
@Loop final class Holdings {
    /// The bytes for the clients of one user.
    static let maximumPerUser = 64 << 20
    /// The bytes for the clients of all users but root.
    static let maximum = 256 << 20
    /// Room for what comes after a check: the answer to a line, and small buffers of many clients.
    private static let reserve = 8 << 20

    private var bytes: [UInt32?: Int] = [:]
    private var sum = 0
    /// The bytes that were freed since memory was last returned to the system.
    private var freed = 0
    private var isGivingBack = false
    private lazy var giveBack = Loop.Alarm { [unowned self] in
        freed = 0
        isGivingBack = false
        clinux_give_back_memory()
    }

    /// Whether the daemon may keep more for this user.
    func hasRoom(for uid: UInt32?) -> Bool {
        bytes[uid, default: 0] < Self.maximumPerUser - Self.reserve
            && (uid == 0 || sum < Self.maximum - Self.reserve)
    }

    func bytes(of uid: UInt32?) -> Int { bytes[uid, default: 0] }

    func change(_ uid: UInt32?, by count: Int) {
        guard count != 0 else { return }
        let new = bytes[uid, default: 0] + count
        bytes[uid] = new > 0 ? new : nil
        if uid != 0 { sum += count }
        guard count < 0 else { return }
        freed -= count
        guard freed >= 1 << 20, !isGivingBack else { return }
        // The C library keeps freed memory. One call for all clients that leave together.
        isGivingBack = true
        giveBack.set(after: 500)
    }
}

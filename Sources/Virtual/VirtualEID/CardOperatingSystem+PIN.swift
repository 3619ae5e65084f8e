// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import EID
import ISO7816
import ReadersVirtual
import Text

/// PIN management. TR-03110-2 3.3, TR-03110-3 B.11.9 to B.11.11.
extension CardOperatingSystem {
    /// RESET RETRY COUNTER. Sets a new PIN (02 03) in a channel of the PIN. Resets the retry counter of the PIN (03 03)
    /// in a channel of the PUK. A terminal with the right of PIN management may do both, and set a new CAN (02 02).
    func resetRetryCounter(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        guard [[0x02, 0x02], [0x02, 0x03], [0x03, 0x03]].contains([command.p1, command.p2]) else {
            throw RefusedCommand(0x6A86)
        }
        let mayManage = session.allows(.pinManagement)
        if command.p2 == 0x02 {
            guard mayManage else { throw RefusedCommand(0x6982) }
            guard command.data.count == CardPasswords.canLength else { throw RefusedCommand(0x6700) }
            guard passwords.changeCAN(to: Secret(command.data)) else { throw RefusedCommand(0x6A80) }
        } else if command.p1 == 0x02 {
            guard mayManage || isProtected && session.password == .pin else { throw RefusedCommand(0x6982) }
            guard command.data.count == CardPasswords.pinLength else { throw RefusedCommand(0x6700) }
            guard passwords.change(to: Secret(command.data)) else { throw RefusedCommand(0x6A80) }
        } else {
            guard mayManage || isProtected && session.password == .puk else { throw RefusedCommand(0x6982) }
            guard command.data.isEmpty else { throw RefusedCommand(0x6700) }
            if mayManage {
                passwords.restoreTries()
            } else if !passwords.unblockWithPUK() {
                throw RefusedCommand(0x6982)
            }
        }
        return ResponseAPDU(.ok)
    }

    /// ACTIVATE and DEACTIVATE of the PIN (10 03).
    func setPINActive(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        guard command.p1 == 0x10, command.p2 == 0x03 else { throw RefusedCommand(0x6A86) }
        guard session.allows(.pinManagement) else { throw RefusedCommand(0x6982) }
        guard command.data.isEmpty else { throw RefusedCommand(0x6700) }
        passwords.setActive(command.ins == 0x44)
        return ResponseAPDU(.ok)
    }
}

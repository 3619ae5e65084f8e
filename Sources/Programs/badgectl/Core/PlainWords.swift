// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Glibc
import Host
import Synchronization
import Text

/// Texts of badged as a person at the shell needs them: with the commands of badgectl in place of those of the protocol.
enum PlainWords {
    /// The command of badgectl for a command of the protocol that texts of badged name.
    private static let commands = [
        "SETUP_ENDPOINT": "badgectl endpoint setup", "REMOVE_ENDPOINT": "badgectl endpoint remove",
        "GET_KEYS": "badgectl keys list", "DELETE_KEY": "badgectl keys delete",
        "PASS_PREPARE": "badgectl wallet prepare", "WALLET_PREPARE": "badgectl wallet prepare",
        "SETUP_DEVICE": "badgectl wallet setup", "RESET_PIN": "badgectl wallet pin",
        "RESET_CARD": "badgectl wallet reset-card", "AUTHORIZE_DEVICE_WITH_MNEMONICS": "badgectl wallet words",
        "MPIN_START_AUTHENTICATION": "badgectl mpin login", "MPIN_CONFIRM_REGISTRATION": "badgectl mpin register",
        "MPIN_FINISH_REGISTRATION": "badgectl mpin register", "MPIN_RESTART_REGISTRATION": "badgectl mpin register",
        "MPIN_MAKE_USER": "badgectl mpin register", "MPIN_DELETE_USER": "badgectl mpin delete",
        "MPIN_START_DVS": "badgectl mpin register-dvs", "MPIN_FINISH_DVS": "badgectl mpin register-dvs",
        "REMOVE_REMOTE": "badgectl remote forget", "START_SCAN": "badgectl scan", "RUN_AUTH": "badgectl auth",
        "RUN_CHANGE_PIN": "badgectl change-pin", "RUN_READ_DOCUMENT": "badgectl document",
        "IMPORT_SITE": "badgectl keys site", "GET_HEALTH": "badgectl health", "UNPAIR": "badgectl wallet unpair",
        "REMOVE_READER_KEY": "badgectl irk remove",
    ]

    /// The text with the commands of the shell.
    static func text(_ text: String) -> String {
        // Foreign text that cannot be compared is not looked into.
        guard text.isComparable else { return text }
        var words = replaced(DaemonWords.text(text), ofOwnDaemon: isOwnDaemon)
        if !mayReadLog { words = words.replacing("journalctl ", with: "sudo journalctl ") }
        return words.replacing("sudo sudo ", with: "sudo ")
    }

    /// The text without words of the protocol. `isOwn`: a badged that was started by hand has no journal.
    static func replaced(_ text: String, ofOwnDaemon isOwn: Bool) -> String {
        var words = text
        for (name, command) in commands where text.contains(name) {
            words = words.replacing("send \(name)", with: "run \(command)").replacing(name, with: command)
            // Some texts name both: (RESET_CARD, badgectl wallet reset-card).
            words = words.replacing("\(command), \(command)", with: command)
        }
        // The unit of another program says where that one runs.
        guard isOwn, !words.contains("systemctl status badged-") else { return words }
        return words.replacing("journalctl -u badged", with: tr("the log is where badged was started"))
            .replacing("systemctl status badged", with: tr("see whether it still runs where it was started"))
    }

    /// The socket that this program uses; nil: the command line is not read yet.
    private static let socket = Mutex<String?>(nil)

    static func use(socket path: String) { socket.withLock { $0 = path } }

    /// Whether the socket is not the one of the service.
    private static var isOwnDaemon: Bool { socket.withLock { $0 != nil && $0 != SocketPath.system } }

    /// Whether this user may read the journal of the system: root, and members of the groups that systemd lets read it.
    private static let mayReadLog: Bool = {
        guard geteuid() != 0 else { return true }
        var groups = [gid_t](repeating: 0, count: 256)
        let count = getgroups(Int32(groups.count), &groups)
        let names = ["adm", "systemd-journal", "wheel"]
        let readers: [gid_t] = names.compactMap { (name: String) in getgrnam(name)?.pointee.gr_gid }
        return groups.prefix(max(0, Int(count))).contains(where: readers.contains)
    }()
}

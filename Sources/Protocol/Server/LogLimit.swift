// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host

/// Limits the log lines that the clients of one user cause, and counts what is left out.
@Loop final class LogLimit {
    /// The time in milliseconds for which lines are counted.
    private static let window: Int64 = 60_000

    private struct User {
        /// The beginning of the window in milliseconds.
        var begin: Int64
        var written: [Log.Level: Int] = [:]
        var leftOut = 0
    }

    private var users: [UInt32?: User] = [:]
    private let log: SocketServer.LogFunction
    private var isReportSet = false
    private lazy var report = Loop.Alarm { [unowned self] in reportNow() }

    init(_ log: @escaping SocketServer.LogFunction) { self.log = log }

    /// The largest number of lines of one user in a window. At the levels for a search, a line is a normal event.
    private static func maximum(at level: Log.Level) -> Int { level <= .notice ? 100 : 500 }

    func write(_ level: Log.Level, _ text: String, _ fields: Log.Fields = Log.Fields(), for uid: UInt32?) {
        var fields = fields
        fields.uid = uid
        if users.count > 1000 {
            users = users.filter { $0.value.leftOut > 0 || Loop.now - $0.value.begin < Self.window }
        }
        var user = users[uid] ?? User(begin: Loop.now)
        if user.leftOut == 0, Loop.now - user.begin >= Self.window { user = User(begin: Loop.now) }
        let count = user.written[level, default: 0]
        if count < Self.maximum(at: level) {
            user.written[level] = count + 1
            log(level, text, fields)
        } else if level <= Log.level {
            user.leftOut += 1
            if !isReportSet { report.set(after: Self.window) }
            isReportSet = true
        }
        users[uid] = user
    }

    /// Says how many lines were left out, and begins new windows.
    func reportNow() {
        isReportSet = false
        for (uid, user) in users where user.leftOut > 0 {
            let text = "\(user.leftOut) log lines about clients of \(SocketServer.text(uid)) were left out"
            log(.warning, text, Log.Fields(uid: uid))
            users[uid] = nil
        }
    }
}

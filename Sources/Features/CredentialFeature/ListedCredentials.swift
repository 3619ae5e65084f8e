// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
package import Concurrency
import Crypto
import Host
import Text
package import Vault

/// The allow list in force. A new one is read on a thread, and the old one answers until the new one is whole.
@Loop package final class ListedCredentials {
    private var path: String?
    private let siteKey: SiteKey?
    private var list: AllowList?
    /// When the list was read, in milliseconds since 1970.
    private var readAt: Int64?
    /// Why the file could not be read the last time, and since when it cannot, by `Loop.now`.
    private var fault: (error: StartError, since: Int64)?
    private var loads = 0
    private var watch: FileWatch?
    /// Called when a file has been read, or could not be.
    var onLoad: @Loop () -> Void = {}

    /// `path` is `[credentials] allow_list`; nil: there is no list.
    package init(_ path: String?, _ siteKey: SiteKey?) { (self.path, self.siteKey) = (path, siteKey) }

    /// Reads the file, perhaps under a new path. After a fault the old list stays, with a line in the log. A file that
    /// is watched is read again when another one is renamed onto it.
    package func load(_ path: String?, isWatched: Bool = false) async {
        loads += 1
        let load = loads
        // Before the file is read, so that no change is missed.
        if watch?.path != path || !isWatched { watch = nil }
        guard let path else { return (self.path, list, readAt, fault) = (nil, nil, nil, nil) }
        if isWatched, watch == nil {
            watch = FileWatch(path) { [weak self] in Task { @Loop in await self?.load(path, isWatched: true) } }
        }
        let found = OneShot<Result<AllowList, StartError>>()
        let hasSiteKey = siteKey != nil
        let isStarted = startThread("badged-list") {
            found.fill(Result { () throws(StartError) in try AllowList(file: path, hasSiteKey: hasSiteKey) })
        }
        if !isStarted {
            let hint = "raise TasksMax= in badged.service, then send SIGHUP"
            found.fill(.failure(StartError("[credentials] allow_list: cannot spawn a thread to read it", hint: hint)))
        }
        let result = await found.value(whenCancelled: .failure(StartError("cancelled", hint: "")))
        // A later SIGHUP reads the file again.
        guard load == loads else { return }
        switch result {
        case .success(let new):
            self.path = path
            list = new
            readAt = Loop.wallClock
            fault = nil
            clinux_give_back_memory()
            Log.info("the allow list has \(new.count) entries")
        case .failure(let error): failed(error, path)
        }
        onLoad()
    }

    private func failed(_ error: StartError, _ path: String) {
        self.path = path
        fault = (error, fault?.since ?? Loop.now)
        Log.error(
            "\(error.message); hint: \(error.hint); \(list == nil ? "nobody is listed" : "the old list stays in force")"
        )
    }

    /// Whether the list has a key; nil: there is no list. Without a list that can be read, nobody is listed.
    func isListed(_ key: ECPublicKey) -> Bool? {
        guard path != nil else { return nil }
        return list?.contains(x: key.compressed, siteKey) ?? false
    }

    func health() -> [HealthCheck] {
        guard path != nil else { return [] }
        guard let fault else { return [HealthCheck("allowList", ok: true)] }
        let hint = Phrase(stringLiteral: fault.error.hint)
        return [
            HealthCheck(
                "allowList",
                ok: false,
                cause: Phrase(verbatim: fault.error.message),
                advice: list == nil
                    ? "\(hint); nobody is listed" : "\(hint); the old list stays in force",
                errorAgo: Loop.now - fault.since
            )
        ]
    }

    /// The number of entries, and when they were read in seconds since 1970; nil without a list.
    var state: (entries: Int, time: Int64)? {
        guard let list, let readAt else { return nil }
        return (list.count, readAt / 1000)
    }
}

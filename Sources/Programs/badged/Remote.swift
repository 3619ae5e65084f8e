// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Glibc
import Host
import ReadersRemote
import RemoteFeature
import Store
import Text

/// Readers over the network, as `[remote]` says.
@Loop struct Remote {
    let store: RemoteStore
    let lenders: RemoteLenders?
    let sharing: RemoteSharing?

    /// nil when both halves are off.
    init?(
        _ configuration: RemoteConfiguration,
        _ limits: ServerLimits,
        _ registry: ReaderRegistry,
        _ state: StateStore
    ) {
        guard configuration.isEnabled || configuration.isShared else { return nil }
        let store = RemoteStore(state)
        let name = DeviceName.clean(configuration.name ?? Self.hostName)
        self.store = store
        // One run of badged-remote for both halves.
        let socket = systemEnvironment("BADGED_REMOTE_SOCKET")
        let driver = RemoteDriver(socket: socket?.isEmpty == false ? socket : nil)
        lenders =
            configuration.isEnabled
            ? RemoteLenders(
                store,
                RemoteLenders.Settings(interfaces: configuration.interfaces, name: name),
                driver
            ) : nil
        guard configuration.isShared else {
            sharing = nil
            return
        }
        var shared = LendingSettings(
            readers: configuration.readers,
            interfaces: configuration.interfaces,
            name: name
        )
        shared.cardTime = Int64(limits.promptTimeout / .milliseconds(1))
        sharing = RemoteSharing(registry, store, shared, driver, besides: lenders)
    }

    private static var hostName: String {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "badged" }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Glibc
import HTTP
import Host
import ReadersRemote
import RemoteFeature
import RemoteIFD
import Store

/// Readers over the network, as `[remote]` says.
@Loop struct Remote {
    let store: RemoteStore
    let lenders: RemoteLenders?
    let sharing: RemoteSharing?

    /// nil when both halves are off.
    init?(
        _ configuration: RemoteConfiguration,
        _ limits: ServerLimits,
        _ network: Network,
        _ registry: ReaderRegistry,
        _ state: StateStore
    ) {
        guard configuration.isEnabled || configuration.isShared else { return nil }
        let store = RemoteStore(state)
        let name = DeviceName.clean(configuration.name ?? Self.hostName)
        self.store = store
        // One run of badged-network for both halves.
        let remote = RemoteNetwork(network)
        lenders =
            configuration.isEnabled
            ? RemoteLenders(
                store,
                RemoteLenders.Settings(interfaces: configuration.interfaces, name: name),
                remote
            ) : nil
        guard configuration.isShared else {
            sharing = nil
            return
        }
        var shared = RemoteSharing.Settings(
            readers: configuration.readers,
            interfaces: configuration.interfaces,
            name: name
        )
        shared.cardTime = Int64(limits.promptTimeout / .milliseconds(1))
        sharing = RemoteSharing(registry, store, shared, remote) { level, text in Log.write(level) { "\(text)" } }
    }

    private static var hostName: String {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "badged" }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

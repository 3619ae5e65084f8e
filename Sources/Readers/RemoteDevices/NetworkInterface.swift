// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Text

/// A network interface of this host, and where announcements reach all hosts of its network.
package struct NetworkInterface: Sendable, Hashable {
    package let name: String
    /// The broadcast address of each IPv4 address. With an IPv6 address that is not link-local, also the multicast
    /// group of AusweisApp. On the loopback interface: its own IPv4 address.
    package let targets: [RemoteAddress.Host]
    /// The own addresses that other hosts reach: neither link-local ones nor those of the loopback interface.
    package let addresses: [RemoteAddress.Host]

    /// ff02::178
    private static let group: [UInt8] = [0xFF, 0x02] + [UInt8](repeating: 0, count: 12) + [0x01, 0x78]

    /// The interfaces that are up. Without names: those with a broadcast address, which excludes the loopback
    /// interface.
    package static func all(named names: [String]) -> [NetworkInterface] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return [] }
        defer { freeifaddrs(list) }
        var targets: [String: [RemoteAddress.Host]] = [:]
        var addresses: [String: [RemoteAddress.Host]] = [:]
        var next = list
        while let entry = next?.pointee {
            next = entry.ifa_next
            let (name, flags) = (String(cString: entry.ifa_name), Int32(entry.ifa_flags))
            let isLoopback = flags & Int32(IFF_LOOPBACK) != 0
            guard flags & Int32(IFF_UP) != 0, names.isEmpty ? !isLoopback : names.contains(name),
                isLoopback || flags & Int32(IFF_BROADCAST) != 0, let address = host(entry.ifa_addr)
            else { continue }
            if address.isGlobal, !isLoopback { addresses[name, default: []].append(address) }
            switch address {
            case .four:
                guard let target = isLoopback ? address : host(entry.ifa_ifu.ifu_broadaddr) else { continue }
                targets[name, default: []].append(target)
            case .six(let bytes, _):
                let group = RemoteAddress.Host.six(group, scope: if_nametoindex(name))
                // fe80::/10 is link-local.
                guard !isLoopback, bytes[0] != 0xFE, targets[name]?.contains(group) != true else { continue }
                targets[name, default: []].append(group)
            }
        }
        return targets.map { NetworkInterface(name: $0.key, targets: $0.value, addresses: addresses[$0.key] ?? []) }
            .sorted { $0.name < $1.name }
    }

    /// What to do against a flood that comes from an address. `option` of ss(8) names the kind of sockets.
    static func advice(againstFloodFrom source: RemoteAddress.Host, _ option: String) -> Phrase {
        guard source.isLoopback || all(named: []).contains(where: { $0.addresses.contains(source) }) else {
            return "find the host with the address \(source) in this network, or block it in the firewall"
        }
        return "\(source) is this host: end the program that causes it, which sudo ss \(option) --processes shows"
    }

    private static func host(_ pointer: UnsafeMutablePointer<sockaddr>?) -> RemoteAddress.Host? {
        guard let pointer else { return nil }
        let size =
            switch Int32(pointer.pointee.sa_family) {
            case AF_INET: MemoryLayout<sockaddr_in>.size
            case AF_INET6: MemoryLayout<sockaddr_in6>.size
            default: 0
            }
        guard size > 0 else { return nil }
        var storage = sockaddr_storage()
        withUnsafeMutableBytes(of: &storage) { target in
            target.copyMemory(from: UnsafeRawBufferPointer(start: pointer, count: size))
        }
        return RemoteAddress(storage)?.host
    }

    /// Joins the multicast group of announcements with a socket of IPv6.
    package static func join(_ socket: Int32, on name: String?) {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return }
        defer { freeifaddrs(list) }
        var next = list
        while let entry = next?.pointee {
            next = entry.ifa_next
            let flags = Int32(entry.ifa_flags)
            guard flags & Int32(IFF_UP) != 0, flags & Int32(IFF_MULTICAST) != 0,
                name == nil || String(cString: entry.ifa_name) == name
            else { continue }
            var request = ipv6_mreq()
            withUnsafeMutableBytes(of: &request.ipv6mr_multiaddr) { $0.copyBytes(from: group) }
            request.ipv6mr_interface = if_nametoindex(entry.ifa_name)
            // A membership that exists, or an interface without IPv6, is no failure.
            let size = socklen_t(MemoryLayout<ipv6_mreq>.size)
            setsockopt(socket, Int32(IPPROTO_IPV6), IPV6_JOIN_GROUP, &request, size)
        }
    }
}

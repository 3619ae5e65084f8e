// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import EService
import Glibc
import HTTP
import Host

extension ProxySettings {
    /// Reads the proxies of `[eid] proxy`, and the file of `[eid] proxy_credentials`.
    /// - Returns: nil when connections go out directly.
    /// - Throws: `StartError`. A proxy that cannot be used never means a direct connection.
    static func read(
        _ settings: Settings,
        environment: @escaping Environment = systemEnvironment
    ) throws(StartError) -> ProxySettings? {
        let proxies: ProxySettings
        switch settings.proxy {
        case .none: return nil
        case .address(let text):
            guard let proxy = Proxy(text, try credentials(settings, environment)) else {
                throw .inConfiguration(
                    "[eid] proxy cannot be '\(text)'",
                    hint: "allowed: none, environment, http://HOST:PORT"
                )
            }
            proxies = ProxySettings(proxy)
        case .environment:
            let credentials = try credentials(settings, environment)
            do throws(Unusable) {
                proxies = try ProxySettings(environment: environment, credentials)
            } catch {
                throw .inConfiguration(
                    "the variable \(error.variable) names no proxy that badged can use",
                    hint: "badged uses HTTP proxies: http://HOST:PORT"
                )
            }
        }
        if proxies.isEmpty {
            Log.warning("[eid] proxy is environment, and https_proxy is not set; hint: systemctl edit badged")
        }
        return proxies.isEmpty ? nil : proxies
    }

    private static func credentials(
        _ settings: Settings,
        _ environment: Environment
    ) throws(StartError) -> Proxy.Credentials? {
        guard let path = settings.proxyCredentials else { return nil }
        let descriptor = clinux_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0)
        guard descriptor >= 0 else {
            throw .inConfiguration(
                "cannot read \(path): \(String(cString: strerror(errno)))",
                hint: "it must belong to the user of the daemon: chown badged: \(path)"
            )
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw .inConfiguration("\(path) is not a file", hint: "correct [eid] proxy_credentials")
        }
        // systemd protects the files of LoadCredential= by an access list, whose mask looks like rights of the group.
        let isCredential = environment("CREDENTIALS_DIRECTORY").map { !$0.isEmpty && path.hasPrefix($0 + "/") } ?? false
        guard isCredential || status.st_mode & 0o077 == 0 else {
            throw .inConfiguration(
                "\(path) can be read by other users",
                hint: "chown badged: \(path) && chmod 600 \(path)"
            )
        }
        return try withUnsafeTemporaryAllocation(byteCount: Proxy.Credentials.maximumCount + 3, alignment: 1) {
            memory throws(StartError) in
            defer { if let base = memory.baseAddress { explicit_bzero(base, memory.count) } }
            let count = Glibc.read(descriptor, memory.baseAddress, memory.count)
            let bytes = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(memory).prefix(max(count, 0)))
            guard let credentials = Proxy.Credentials(line: bytes) else {
                throw .inConfiguration("\(path) is not one line NAME:PASSWORD", hint: "write NAME:PASSWORD into it")
            }
            return credentials
        }
    }
}

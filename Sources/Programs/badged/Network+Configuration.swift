// SPDX-License-Identifier: GPL-3.0-or-later
import EService
import HTTP
import Host
import Text

extension Network {
    /// Reads `[eid] proxy`, and the variable with which the unit of systemd names the socket of badged-network.
    /// - Throws: `StartError`. A proxy that cannot be used never means a direct connection.
    static func read(
        _ configuration: Configuration,
        environment: @escaping Environment = systemEnvironment
    ) throws(StartError) -> Network {
        let socket = environment("BADGED_NETWORK_SOCKET")
        return Network(
            proxies: try ProxySettings.read(configuration, environment: environment),
            socket: socket?.isEmpty == false ? socket : nil,
            spare: SpareRun()
        )
    }
}

extension ProxySettings {
    /// Reads the proxies of `[eid] proxy`, and the file of `[eid] proxy_credentials`.
    /// - Returns: nil when connections go out directly.
    /// - Throws: `StartError`. A proxy that cannot be used never means a direct connection.
    static func read(
        _ configuration: Configuration,
        environment: @escaping Environment = systemEnvironment
    ) throws(StartError) -> ProxySettings? {
        let proxies: ProxySettings
        switch configuration.proxy {
        case .none: return nil
        case .address(let text):
            guard let proxy = Proxy(text, try credentials(configuration, environment)) else {
                throw .inConfiguration(
                    "[eid] proxy cannot be '\(ConfigurationValue.shown(text))'",
                    of: "[eid] proxy",
                    hint: "allowed: none, environment, http://HOST:PORT"
                )
            }
            proxies = ProxySettings(proxy)
        case .environment:
            let credentials = try credentials(configuration, environment)
            proxies = try ProxySettings(environment: environment, credentials)
        }
        if proxies.isEmpty {
            Log.warning("[eid] proxy is environment, and https_proxy is not set; hint: systemctl edit badged")
        }
        return proxies.isEmpty ? nil : proxies
    }

    private static func credentials(
        _ configuration: Configuration,
        _ environment: Environment
    ) throws(StartError) -> Proxy.Credentials? {
        guard let path = configuration.proxyCredentials else { return nil }
        let content = try SecretFile.read(
            path,
            limit: Proxy.Credentials.maximumCount + 2,
            setting: "[eid] proxy_credentials",
            environment
        )
        let credentials = content.withBytes { Proxy.Credentials(line: $0) }
        guard let credentials else {
            throw .inConfiguration(
                "\(path) is not one line NAME:PASSWORD",
                of: "[eid] proxy_credentials",
                hint: "correct the file of [eid] proxy_credentials"
            )
        }
        return credentials
    }
}

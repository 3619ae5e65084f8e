// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Document
import Host
import MobileDocument
import Text

extension DeviceRequest.Identity {
    private static let setting = "[mdoc] identities"
    private static let maximumKey = 4096
    private static let maximumChain = 128 << 10
    private static let maximumRegistration = 64 << 10

    /// Reads the keys of `[mdoc]`, by their names.
    /// - Throws: `StartError` if a file cannot be read, or if a key and its certificate do not fit.
    static func read(
        _ configuration: Configuration,
        environment: @escaping Environment = systemEnvironment
    ) throws(StartError) -> [String: DeviceRequest.Identity] {
        var identities: [String: DeviceRequest.Identity] = [:]
        for files in configuration.mdocIdentities {
            let content = try SecretFile.read(files.key, limit: maximumKey, setting: setting, environment)
            guard let key = try? ECPrivateKey(pkcs8: content) else {
                throw .inConfiguration(
                    "\(setting): \(files.key) is not a private key on a curve",
                    hint: "the form is PKCS#8 in DER without encryption; see badged.conf(5)"
                )
            }
            let chain = try certificates(files.chain)
            guard case .elliptic(let certified)? = try? chain.first?.publicKey, certified == key.publicKey else {
                throw .inConfiguration(
                    "\(setting): the first certificate of \(files.chain) is not that of the key \(files.key)",
                    hint: "put the certificate of the key first, then those of its authorities"
                )
            }
            // The phone has the root.
            let sent = chain.prefix(1) + chain.dropFirst().filter { !$0.isSelfIssued }
            identities[files.name] = DeviceRequest.Identity(
                key: key,
                certificates: sent.map(\.bytes),
                registration: try files.registration.map { path throws(StartError) in
                    try bytes(path, limit: maximumRegistration)
                }
            )
        }
        return identities
    }

    private static func certificates(_ path: String) throws(StartError) -> [DocumentCertificate] {
        let content = try bytes(path, limit: maximumChain)
        let objects = content.first == 0x30 ? [content] : PEM.objects(in: content).compactMap(\.der)
        let certificates = objects.compactMap { try? DocumentCertificate($0) }
        guard !certificates.isEmpty, certificates.count == objects.count, certificates.count <= 8 else {
            throw .inConfiguration(
                "\(setting): \(path) has no chain of certificates",
                hint: "the form is PEM, at most 8 certificates, that of the key first"
            )
        }
        return certificates
    }

    private static func bytes(_ path: String, limit: Int) throws(StartError) -> [UInt8] {
        try PlainFile.check(path, of: setting)
        switch PlainFile.read(path, limit: limit) {
        case .bytes(let bytes) where !bytes.isEmpty: return bytes
        case .bytes: throw .inConfiguration("\(setting): \(path) is empty", hint: "see badged.conf(5)")
        case .missing: throw ConfiguredPath.refusal(path, nil, of: setting)
        case .tooLong: throw .inConfiguration("\(path) is too long", hint: "correct \(setting)")
        case .failed(let reason):
            throw ConfiguredPath.refusal(path, reason, of: setting, mayPass: PlainFile.mayPass())
        }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import CountryAuthorities
import EID
import Glibc
import Host
import Text

/// The commands about the country authorities that badged trusts.
let anchorFeature = FeatureCommands(group: .administration, commands: [AnchorsCommand.spec])

extension Invocation {
    /// The folder of certificates: that of `--folder`, else the one that `check` of badged names, else that of
    /// badged.conf, with a note.
    func anchorFolder(_ check: String, _ configured: (Configuration) -> String) async throws -> String {
        if let folder = value(of: .folder) { return folder }
        var reason = tr("badged does not say which folder it uses")
        do throws(ClientError) {
            // --json is for the certificates, so the messages of badged are not shown.
            let connection = try await DaemonConnection.connect(to: socket, keepsEvents: false)
            defer { connection.close() }
            let checks = try await connection.health()
            if let folder = checks.first(where: { $0.name == check })?.folder, folder.hasPrefix("/") { return folder }
        } catch {
            // A badged that is named must be there.
            guard !has(.socket) else { throw error }
            reason = CommandFailure(error).text
        }
        let folder = configured(try Configuration(path: nil))
        Output.note(tr("\(reason); this is about the folder of badged.conf: \(folder)").printable)
        return folder
    }

    func trustAnchorFolder() async throws -> String {
        try await anchorFolder(TrustAnchorReport.checkName, \.trustAnchors)
    }

    /// The SHA-256 of an option; nil without the option. `hint` says where the user finds one.
    func fingerprint(of option: OptionName, hint: String) throws -> [UInt8]? {
        guard let text = value(of: option) else { return nil }
        guard let bytes = Hex.decode(text.filter { $0 != ":" }), bytes.count == 32 else {
            throw CommandFailure(usage: tr("\(option) needs the 64 hexadecimal digits of a SHA-256"), hint: hint)
        }
        return bytes
    }
}

extension CommandFailure {
    /// Certificates that cannot be written by `command`.
    init(_ error: SystemError, in command: String) {
        let isDenied = error.code == EACCES || error.code == EPERM
        self.init(
            isDenied ? .denied : .failed,
            tr("cannot write \(error)"),
            hint: isDenied ? tr("run badgectl as root: sudo badgectl \(command)") : tr("nothing was changed")
        )
    }
}

extension CVCertificate {
    /// The first and the last day.
    var validity: String { tr("\(effectiveDate.text) to \(expirationDate.text)") }
}

/// Warns before an authentication that badged trusts no country authority, because no authentication can succeed then.
enum TrustAnchorAdvice {
    static func check(_ workflow: WorkflowRun) async throws {
        let checks: [BadgedClient.HealthCheck]
        do throws(ClientError) {
            checks = try await workflow.connection.health()
        } catch {
            // A user may authenticate without the permission to see the health, and an older badged has no such check.
            switch error {
            case .accessDenied, .unknownCommand: return
            default: throw error
            }
        }
        guard let anchors = checks.first(where: { $0.trustAnchors != nil }), anchors.trustAnchors?.newest == nil else {
            return
        }
        throw CommandFailure(
            tr("badged trusts no country authority, so no authentication can succeed"),
            hint: tr("import the certificates of the authority: sudo badgectl anchors import")
        )
    }
}

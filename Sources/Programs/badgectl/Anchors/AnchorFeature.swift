// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import EID
import Host

/// The commands about the country authorities that badged trusts.
let anchorFeature = Feature(commands: [AnchorsCommand.spec])

extension Invocation {
    /// The folder of the trust anchors: that of `--folder`, else that of badged.conf.
    func anchorFolder() throws(Failure) -> String {
        if let folder = value(of: "--folder") { return folder }
        do throws(StartError) {
            return try Configuration(path: nil).trustAnchors
        } catch {
            throw Failure(.failed, error.message, hint: error.hint)
        }
    }
}

extension CVCertificate {
    /// The first and the last day.
    var validity: String { "\(effectiveDate.text) to \(expirationDate.text)" }
}

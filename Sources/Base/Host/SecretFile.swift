// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
package import Text

/// A file with a secret, which only the user of this program may read, or which systemd passes (`LoadCredential=`).
package enum SecretFile {
    /// Reads at most `limit` bytes and one more, so that a longer file is seen. `setting` is the key of the configuration
    /// that names the file, for messages. `user` is whose file it is; nil: the user of this program.
    /// - Throws: `StartError` if the file cannot be read, or if other users can read it. After a fault of the disk or a
    ///   lack of descriptors its exit code is not that of a wrong configuration.
    package static func read(
        _ path: String,
        limit: Int,
        setting: String,
        _ environment: Environment = systemEnvironment,
        user: UInt32? = nil
    ) throws(StartError) -> Secret {
        let descriptor: Int32
        let user = user ?? geteuid()
        let advice = Phrase(
            "the file of \(setting) must belong to the user of this program: chown it, and chmod 600 \(path)"
        )
        switch PlainFile.open(path) {
        case .file(let opened): descriptor = opened
        case .missing: throw ConfiguredPath.refusal(path, nil, of: setting)
        case .failed(let reason):
            throw ConfiguredPath.refusal(path, reason, of: setting, hint: advice, mayPass: PlainFile.mayPass())
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .disturbed(path, errorText(), of: setting) }
        // systemd protects credentials by an access list, whose mask looks like rights of the group.
        let isCredential = environment("CREDENTIALS_DIRECTORY").map { !$0.isEmpty && path.hasPrefix($0 + "/") } ?? false
        guard isCredential || status.st_mode & 0o077 == 0 else {
            throw .inConfiguration(saying: Phrase("\(path) can be read by other users"), of: setting, hint: advice)
        }
        guard !PlainFile.isExposed(status, user: user) else {
            throw .inConfiguration(
                saying: Phrase("\(path) belongs to another user"),
                of: setting,
                hint: advice + PlainFile.adviceForRoot(status.st_uid)
            )
        }
        if !isCredential { try PlainFile.checkPlace(path, user: user) }
        var count = 0
        var code: Int32 = 0
        let content = Secret(count: limit + 1) { memory in
            repeat {
                count = Glibc.read(descriptor, memory.baseAddress, memory.count)
            } while count < 0 && errno == EINTR
            code = errno
        }
        guard count >= 0, let part = content.part(0..<count) else {
            let (reason, mayPass) = (errorText(code), PlainFile.mayPass(code))
            throw ConfiguredPath.refusal(path, reason, of: setting, hint: advice, mayPass: mayPass)
        }
        return part
    }
}

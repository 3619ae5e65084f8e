// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
package import Text

/// Judges the paths that configurations name, for all programs of badged: files that are read, folders, sockets, devices.
package enum ConfiguredPath {
    // MARK: Files

    /// Why a file is not read. `reason` is that of `PlainFile`; nil: there is no file. `hint` is the remedy where the file
    /// has to be changed, and not its path. `mayPass` is that of `PlainFile`.
    package static func refusal(
        _ path: String,
        _ reason: String?,
        of setting: String,
        hint: Phrase? = nil,
        mayPass: Bool = false
    ) -> StartError {
        if let reason, mayPass { return .disturbed(path, reason, of: setting) }
        let correct = Phrase("correct \(setting)")
        guard let reason else {
            let words =
                isLink(path)
                ? Phrase("\(path) is a link to a file that is not there") : Phrase("there is no file \(path)")
            return .inConfiguration(saying: words, of: setting, hint: correct)
        }
        var remedy = correct
        if let status = status(of: path) {
            remedy = status.st_mode & S_IFMT == S_IFREG ? hint ?? remedy : Phrase("name a file in \(setting)")
        } else if errno == EACCES {
            remedy = hint ?? remedy
        }
        let words = Phrase("cannot read \(path): \(Phrase(stringLiteral: reason))")
        return .inConfiguration(saying: words, of: setting, hint: remedy)
    }

    /// Refuses a path that is no file, or a file that cannot be read.
    package static func checkFile(_ path: String, of setting: String) throws(StartError) {
        switch PlainFile.open(path) {
        case .file(let descriptor): close(descriptor)
        case .missing: throw refusal(path, nil, of: setting)
        case .failed(let reason): throw refusal(path, reason, of: setting, mayPass: PlainFile.mayPass())
        }
    }

    // MARK: Folders

    package enum Use: Sendable {
        case read, write
    }

    /// Why a folder cannot be used; nil: it can. A folder whose files are read may be missing.
    package static func reason(againstFolder path: String, for use: Use) -> String? {
        guard let status = status(of: path) else {
            if errno != ENOENT { return errorText() }
            if isLink(path) { return "it is a link to a folder that is not there" }
            return use == .read ? nil : "there is no such folder"
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { return "it is no folder" }
        if isOfKernel(path) { return "it is a folder of the kernel, which keeps no files" }
        return access(path, use == .read ? R_OK | X_OK : W_OK | X_OK) == 0 ? nil : errorText()
    }

    package static func checkFolder(_ path: String, for use: Use, of setting: String) throws(StartError) {
        guard let reason = reason(againstFolder: path, for: use) else { return }
        throw .inConfiguration(
            "the folder \(path) cannot be used: \(reason)",
            of: setting,
            hint: "correct \(setting), or the folder"
        )
    }

    /// Whether the files in a folder are those of devices, processes or the kernel.
    private static func isOfKernel(_ path: String) -> Bool {
        guard let resolved = realpath(path, nil) else { return false }
        defer { free(resolved) }
        let real = String(cString: resolved) + "/"
        return !real.hasPrefix("/dev/shm/") && ["/dev/", "/proc/", "/sys/"].contains { real.hasPrefix($0) }
    }

    // MARK: Sockets and devices

    /// Refuses a path at which there can be no Unix socket. With `isMade` the program itself makes the socket.
    package static func checkSocket(_ path: String, isMade: Bool, of setting: String) throws(StartError) {
        guard UnixAddress(path: path) != nil else {
            throw .inConfiguration(
                "the socket path \(path) has \(path.utf8.count) bytes",
                of: setting,
                hint: "the kernel takes 1 to \(UnixAddress.longestPath): choose a shorter one in \(setting)"
            )
        }
        func refuse(_ words: String) -> StartError {
            .inConfiguration("the socket \(path) cannot be used: \(words)", of: setting, hint: "correct \(setting)")
        }
        if let status = status(of: path) {
            if status.st_mode & S_IFMT != S_IFSOCK { throw refuse("there is something else than a socket") }
        } else if errno == ELOOP {
            throw refuse(errorText())
        } else if isMade, isLink(path) {
            throw refuse("it is a link to what is not there")
        }
        guard isMade else { return }
        let end = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        let folder = end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        // systemd makes the folders in /run when it starts the service.
        if folder.hasPrefix("/run/"), status(of: folder) == nil, errno == ENOENT, !isLink(folder) { return }
        if let reason = reason(againstFolder: folder, for: .write) { throw refuse("\(folder): \(reason)") }
    }

    /// Kinds of devices.
    package enum Device: Sendable {
        case serial, tpm

        /// What the kernel calls them.
        fileprivate var subsystems: Set<String> { self == .serial ? ["tty"] : ["tpm", "tpmrm"] }
        fileprivate var name: String { self == .serial ? "serial line" : "TPM" }
    }

    /// Refuses a path that is something else than a device of this kind. A device may be missing: it may be plugged in
    /// later. It is not opened, since that would switch the lines of a serial port.
    package static func checkDevice(_ path: String, _ kind: Device, of setting: String) throws(StartError) {
        func refuse(_ words: String) -> StartError {
            .inConfiguration("\(path) is no \(words)", of: setting, hint: "correct \(setting)")
        }
        guard let status = status(of: path) else {
            // What is missing may come; links that lead to each other never lead to a device.
            if errno == ELOOP { throw refuse("device") }
            return
        }
        guard status.st_mode & S_IFMT == S_IFCHR else { throw refuse("device") }
        // makedev(3)
        let device = status.st_rdev
        let (major, minor) = (device >> 8 & 0xFFF | device >> 32 & ~0xFFF, device & 0xFF | device >> 12 & 0xFFF_FF00)
        // Pseudo terminals have no entry there.
        let subsystem = Sysfs.link("/sys/dev/char", "\(major):\(minor)", "subsystem")
        guard subsystem.map(kind.subsystems.contains) ?? true else { throw refuse(kind.name) }
    }

    // MARK: What is at a path

    /// nil: nothing, with `errno`.
    private static func status(of path: String) -> stat? {
        var status = stat()
        return stat(path, &status) == 0 ? status : nil
    }

    private static func isLink(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }
}

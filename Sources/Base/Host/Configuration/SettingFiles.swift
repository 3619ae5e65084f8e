// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// The files of a configuration in the order in which they are read. A later line replaces an earlier one.
///
/// badged.conf(5): the folder of packages, the main file, and the folder beside it, such as `badged.conf.d`.
package struct SettingFiles: Sendable, Equatable {
    /// The main file; it may be missing unless it was named.
    package var main: String
    package var mustExist: Bool
    /// The folder beside the main file.
    package var folder: String
    /// The folder of packages; nil: none.
    package var vendorFolder: String?

    package static let mostFiles = 100
    package static let mostBytes = 1 << 20

    /// The files for `--config`; nil: those of the system.
    package init(_ path: String?) {
        main = path ?? Configuration.defaultPath
        mustExist = path != nil
        folder = main + ".d"
        vendorFolder = path == nil ? "/usr/lib/badged/badged.conf.d" : nil
    }

    package init(main: String, mustExist: Bool, folder: String, vendorFolder: String?) {
        self.main = main
        self.mustExist = mustExist
        self.folder = folder
        self.vendorFolder = vendorFolder
    }

    /// The contents with the paths. What cannot be read is an error, and never skipped.
    func contents(_ errors: inout [StartError]) -> [(path: String, bytes: [UInt8])] {
        let own = Self.names(in: folder, &errors)
        // A file of the same name hides the one of a package, also when it is a link to /dev/null.
        let vendor = vendorFolder.map { Self.names(in: $0, &errors).filter { !own.contains($0) } } ?? []
        var paths = vendor.map { (vendorFolder ?? "") + "/" + $0 }
        paths.append(main)
        paths += own.map { folder + "/" + $0 }
        guard paths.count <= Self.mostFiles else {
            errors.append(.inConfiguration("there are more than \(Self.mostFiles) files", hint: "join some of them"))
            return []
        }
        var (found, sum): ([(path: String, bytes: [UInt8])], Int) = ([], 0)
        for path in paths where !Self.isSwitchedOff(path) {
            do throws(StartError) {
                guard let bytes = try INIFile.contents(of: path, checksOwner: true) else {
                    guard path == main else {
                        let hint = "remove or rename it: its name is not UTF-8"
                        throw .inConfiguration("cannot read \(path): there is no such file", hint: hint)
                    }
                    guard !mustExist else {
                        throw .inConfiguration("there is no file \(path)", hint: "correct the path after --config")
                    }
                    continue
                }
                sum += bytes.count
                guard sum <= Self.mostBytes else {
                    throw .inConfiguration("\(path): all files together exceed 1 MiB", hint: "shorten the files")
                }
                found.append((path, bytes))
            } catch {
                errors.append(error)
            }
        }
        return found
    }

    /// Whether this is a link to /dev/null.
    private static func isSwitchedOff(_ path: String) -> Bool {
        var target = [UInt8](repeating: 0, count: 16)
        let count = target.withUnsafeMutableBytes { memory in
            memory.baseAddress.map { readlink(path, $0, memory.count) } ?? -1
        }
        return count >= 0 && target.prefix(count).elementsEqual("/dev/null".utf8)
    }

    /// The names that end with `.conf` and do not begin with a dot, by their bytes. A missing folder has none.
    private static func names(in folder: String, _ errors: inout [StartError]) -> [String] {
        guard let names = Folder.names(in: folder, where: { $0.hasSuffix(".conf") && !$0.hasPrefix(".") }) else {
            if errno != ENOENT {
                let hint = errno == ENOTDIR ? "move it: it is no folder" : "chmod a+rx \(folder)"
                errors.append(.inConfiguration("cannot read \(folder): \(errorText())", hint: hint))
            } else if PlainFile.isLink(folder) {
                let hint = "remove the link, or make its folder"
                errors.append(.inConfiguration("\(folder) is a link to a folder that is missing", hint: hint))
            }
            return []
        }
        return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
}

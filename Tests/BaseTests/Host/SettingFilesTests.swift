// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Host
import TestSupport
import Testing

@Suite("badged.conf.d", .timeLimit(.minutes(5)))
struct SettingFilesTests {
    private final class Files {
        private let temporary: TemporaryFolder
        var folder: URL { URL(filePath: temporary.path) }

        init() throws {
            temporary = try TemporaryFolder()
            for name in ["", "vendor", "badged.conf.d"] {
                mkdir("\(temporary.path)/\(name)", 0o755)
                chmod("\(temporary.path)/\(name)", 0o755)
            }
        }

        func write(_ name: String, _ text: String) throws { chmod(try temporary.write(name, text.utf8), 0o644) }

        func read() -> (Configuration, [StartError]) {
            var errors: [StartError] = []
            let files = SettingFiles(
                main: folder.appending(path: "badged.conf").path,
                mustExist: false,
                folder: folder.appending(path: "badged.conf.d").path,
                vendorFolder: folder.appending(path: "vendor").path
            )
            return (Configuration(files: files, errors: &errors), errors)
        }
    }

    @Test(
        "root is told to check the files of the user of the daemon as that user",
        .enabled(if: geteuid() == 0 && NameService.system.userName(1) != nil)
    )
    func filesOfDaemon() throws {
        let files = try Files()
        try files.write("key", "secret")
        let path = files.folder.appending(path: "key").path
        chmod(path, 0o600)
        chown(path, 1, 1)
        let user = try #require(NameService.system.userName(1))
        let errors = [
            #expect(throws: StartError.self) {
                _ = try SecretFile.read(path, limit: 6, setting: "[credentials] site_key")
            },
            #expect(throws: StartError.self) { try PlainFile.check(path, of: "[virtual] cvca") },
        ]
        for error in errors { #expect(error?.hint.contains("runuser -u \(user) -- ") == true) }
        chown(path, 0, 0)
        #expect(throws: Never.self) { _ = try SecretFile.read(path, limit: 6, setting: "[credentials] site_key") }
    }

    @Test("a file that cannot be read now is no fault of the configuration, so a unit starts the program again")
    func disturbed() {
        // The kernel answers EIO for the address 0.
        let path = "/proc/self/mem"
        let errors = [
            #expect(throws: StartError.self) {
                _ = try SecretFile.read(path, limit: 6, setting: "[credentials] site_key")
            },
            #expect(throws: StartError.self) { _ = try INIFile.contents(of: path) },
        ]
        for error in errors {
            #expect(error?.exitCode == 1 && error?.mayPass == true, "\(String(describing: error))")
            #expect(error?.message == "cannot read \(path): \(errorText(EIO))")
        }
        let lasting = #expect(throws: StartError.self) {
            _ = try SecretFile.read("/proc/self", limit: 6, setting: "[credentials] site_key")
        }
        #expect(lasting?.exitCode == 78)
        let found = errors.compactMap(\.self)
        #expect(StartError.exitCode(of: found) == 1)
        #expect(StartError.exitCode(of: found + [lasting].compactMap(\.self)) == 78)
    }

    @Test("later files replace lines of earlier ones, lists too; an empty value is the default; rules add up by name")
    func order() throws {
        let files = try Files()
        try files.write(
            "vendor/10-a.conf",
            "[nfc]\ndevices = pn532_uart:/dev/a\n[access]\nuser:a = scan\n[pcsc]\nenabled = no\n"
        )
        try files.write("badged.conf", "[server]\nmax_clients = 5\nmax_workflows = 6\n[log]\nlevel = debug\n")
        try files.write("badged.conf.d/20-b.conf", "[server]\nmax_clients = 7\n[nfc]\ndevices = pn532_uart:/dev/b\n")
        try files.write("badged.conf.d/3.conf", "[access]\nuser:b = open\nuser:a = none\n[log]\nlevel =\n")
        try files.write("badged.conf.d/.hidden.conf", "rubbish\n")
        try files.write("badged.conf.d/50.conf~", "rubbish\n")
        let (configuration, errors) = files.read()
        #expect(errors.isEmpty, "\(errors)")
        #expect((configuration.limits.clients, configuration.limits.workflows) == (7, 6))
        #expect(configuration.nfcDevices == ["pn532_uart:/dev/b"] && !configuration.isPCSCEnabled)
        #expect(configuration.logLevel == .notice)
        #expect(configuration.access == [AccessRule(.user("b"), .open), AccessRule(.user("a"), [])])
        #expect(configuration.settings["[server] max_clients"]?.place.hasSuffix("20-b.conf, line 2") == true)
        #expect(configuration.printed.contains("badged.conf, line 3\nmax_workflows = 6\n"))
        #expect(configuration.printed.contains("# default\nlevel = notice\n"))
    }

    @Test("a file in the folder of the site hides one of a package, and a link to /dev/null switches it off")
    func hidden() throws {
        let files = try Files()
        try files.write("vendor/a.conf", "[pcsc]\nenabled = no\n")
        try files.write("vendor/b.conf", "[nfc]\nenabled = no\n")
        try files.write("badged.conf.d/a.conf", "[log]\nlevel = info\n")
        try FileManager.default.createSymbolicLink(
            atPath: files.folder.appending(path: "badged.conf.d/b.conf").path,
            withDestinationPath: "/dev/null"
        )
        let (configuration, errors) = files.read()
        #expect(errors.isEmpty)
        #expect(configuration.isPCSCEnabled && configuration.isNFCEnabled && configuration.logLevel == .info)
    }

    @Test("a name that is not UTF-8 is told with what to do")
    func unreachable() throws {
        let files = try Files()
        let folder = files.folder.appending(path: "badged.conf.d").path
        let name = Array("\(folder)/".utf8CString.dropLast()) + [-1] + Array(".conf".utf8CString)
        #expect(close(open(name, O_CREAT, 0o644)) == 0)
        let (_, errors) = files.read()
        #expect(errors.count == 1)
        #expect(errors.first?.message.contains("no such file") == true)
        #expect(errors.first?.hint.contains("rename it") == true)
    }

    @Test(
        "a link to nothing is no missing file: what it has to say may be a denial",
        arguments: ["badged.conf", "badged.conf.d/b.conf", "badged.conf.d"]
    )
    func linkToNothing(name: String) throws {
        let files = try Files()
        let path = files.folder.appending(path: name).path
        rmdir(path)
        #expect(symlink("/nowhere", path) == 0)
        let (_, errors) = files.read()
        #expect(errors.count == 1)
        #expect(errors.first?.message.contains("\(path)") == true)
        #expect(errors.first?.message.contains("is a link to a f") == true)
    }

    @Test("a wrong line counts, also one that is replaced; a file that others can change is refused")
    func wrong() throws {
        let files = try Files()
        try files.write("badged.conf", "[log]\nlevel = loud\n")
        try files.write("badged.conf.d/a.conf", "[log]\nlevel = info\n[nfc]\nenabled = 3\n")
        var (_, errors) = files.read()
        #expect(errors.map { $0.message.components(separatedBy: ", line ").last?.prefix(1) } == ["2", "4"])
        try files.write("badged.conf", "")
        try files.write("badged.conf.d/a.conf", "")
        chmod(files.folder.appending(path: "badged.conf.d/a.conf").path, 0o666)
        (_, errors) = files.read()
        #expect(errors.count == 1 && errors.first?.message.contains("other users can change") == true)
    }

    @Test("equal settings have equal lines; the settings that need a restart are found")
    func changes() throws {
        let files = try Files()
        try files.write("badged.conf", "[log]\nlevel = info\n[server]\nmax_clients = 5\n")
        let old = files.read().0
        try files.write("badged.conf", "[server]\nmax_clients=5\n\n[log]\nlevel  =  info\n")
        var new = files.read().0
        #expect(new.effectiveLines.map(\.text) == old.effectiveLines.map(\.text))
        try files.write("badged.conf", "[server]\nmax_clients=6\n[log]\nlevel = debug\n[access]\ndefault = none\n")
        new = files.read().0
        #expect(new.changes(from: old) == ["[access] default", "[log] level", "[server] max_clients"])
        #expect(new.changes(from: old).filter { !Configuration.isLive($0) } == ["[server] max_clients"])
    }
}

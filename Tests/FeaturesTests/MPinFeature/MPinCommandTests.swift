// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import HTTP
import Host
import TestSupport
import Testing
import Text

@Suite("badgectl mpin", .timeLimit(.minutes(5)))
@Loop struct BadgectlTests {
    /// Runs a command of badgectl mpin with lines for its standard input; returns what it has written and its exit code.
    private func badgectl(_ path: String, _ command: String, input: String? = "") async throws
        -> (output: String, error: String, code: Int32)
    {
        let words = command.split(separator: " ").map(String.init)
        let all = ["--socket", path, "mpin"] + words + (input == nil ? [] : ["--pin-stdin"])
        let program = try RunningProgram("badgectl", all, input: input)
        let code = await program.exitCode
        return (program.text(.output), program.text(.error), code)
    }

    @Test("a user registers, logs in, gets a code, and is deleted")
    func wholeWay() async throws {
        let stage = try await MPinStage()
        let path = try stage.server.listen()
        let (user, url) = (stage.user, stage.servers.url)
        let made = try await badgectl(path, "register \(user) --backend \(url)", input: "7391\n")
        #expect(made.output == "\(user) is registered.\n")
        #expect(made.code == 0)
        let again = try await badgectl(path, "register \(user) --backend \(url)")
        #expect(again.error.contains("is registered already"))
        let login = try await badgectl(path, "login \(user)", input: "7391\n")
        #expect(try JSON(login.output.utf8)["userId"]?.string == user)
        let code = try await badgectl(path, "otp \(user)", input: "7391\n")
        #expect(code.output.utf8.count == 7)
        let wrong = try await badgectl(path, "login \(user)", input: "0000\n")
        #expect(wrong.code == 1)
        #expect(wrong.error.contains("the PIN is wrong"))
        #expect(try await badgectl(path, "users").output == "\(user)  \(url)  REGISTERED\n")
        #expect(try await badgectl(path, "delete \(user) --yes").code == 0)
        #expect(try await badgectl(path, "login \(user)").error.contains("there is no user"))
        await stage.server.stopListening()
    }

    @Test("a registration that must be confirmed is continued by a second register")
    func confirmation() async throws {
        let stage = try await MPinStage("carol+link")
        let path = try stage.server.listen()
        let first = try await badgectl(path, "register \(stage.user) --backend \(stage.servers.url)")
        #expect(first.code == 1)
        #expect(first.error.contains("wants the identity confirmed"))
        let own = try stage.server.connect(uid: geteuid(), .all)
        _ = await stage.run("MPIN_INIT", by: own)
        let user = await stage.run("MPIN_USERS", by: own)["users"]?.array?.first
        try await stage.servers.lab(.post, "activate/\(try #require(user?["mpinId"]?.string))")
        let second = try await badgectl(path, "register \(stage.user) --backend \(stage.servers.url)", input: "7391\n")
        #expect(second.code == 0)
        await stage.server.stopListening()
    }

    @Test("a code that comes after the first try goes to the service")
    func lateCode() async throws {
        let stage = try await MPinStage("carol+link")
        let path = try stage.server.listen()
        let (user, url) = (stage.user, stage.servers.url)
        let first = try await badgectl(path, "register \(user) --backend \(url)")
        #expect(first.error.contains("--code CODE"), "\(first)")
        let wrong = try await badgectl(path, "register \(user) --backend \(url) --code wrong", input: "7391\n")
        #expect(wrong.error.contains("IDENTITY_NOT_AUTHORIZED"), "\(wrong)")
        let right = try await badgectl(path, "register \(user) --backend \(url) --code 17", input: "7391\n")
        #expect(right.code == 0, "\(right)")
        await stage.server.stopListening()
    }

    @Test("a browser is logged in and out, and a blocked user is told so")
    func logoutAndBlock() async throws {
        let stage = try await MPinStage()
        let path = try stage.server.listen()
        let (user, url) = (stage.user, stage.servers.url)
        #expect(try await badgectl(path, "register \(user) --backend \(url)", input: "7391\n").code == 0)
        let none = try await badgectl(path, "logout \(user)")
        #expect(none.code == 1)
        #expect(none.error.contains("a login with an access number begins one"), "\(none)")
        let number = try #require(try await stage.servers.send(.post, "/rps/getAccessNumber")["accessNumber"]?.string)
        #expect(try await badgectl(path, "login \(user) --access-number \(number)", input: "7391\n").code == 0)
        #expect(try await badgectl(path, "logout \(user)").output == "The browser is logged out.\n")
        for text in ["the PIN is wrong", "the PIN is wrong", "the service has blocked \(user)"] {
            let wrong = try await badgectl(path, "login \(user)", input: "0000\n")
            #expect(wrong.code == 1)
            #expect(wrong.error.contains(text), "\(wrong)")
        }
        let blocked = try await badgectl(path, "login \(user)", input: "7391\n")
        #expect(blocked.error.contains("has blocked \(user)\nhint: register again: badgectl mpin delete \(user)"))
        let kept = try await badgectl(path, "delete \(user)")
        #expect(kept.code == 2)
        #expect(kept.error.contains("use --yes"))
        #expect(try await badgectl(path, "delete \(user) --yes").code == 0)
        await stage.server.stopListening()
    }

    @Test("a user of MPinMFA joins a session, logs in, gets codes, and signs")
    func mfa() async throws {
        let stage = try await MPinStage()
        let path = try stage.server.listen()
        let (user, url) = (stage.user, stage.servers.url)
        let service = try await badgectl(path, "service \(url) --client-id c1")
        #expect(service.output.hasPrefix("name     Lab\nbackend  \(url)\nprefix   rps/v2\n"), "\(service)")
        let code = try await badgectl(path, "access-code \(url)/authorize").output.dropLast()
        let session = try await badgectl(path, "session \(code) --backend \(url)")
        #expect(session.output.contains("app            App\n"), "\(session)")
        let options = "--client-id c1 --code 123456 --access-code \(code) --second-factor"
        let made = try await badgectl(path, "register \(user) --backend \(url) \(options)", input: "7391\nslot 3\n")
        #expect(made.output == "\(user) is registered.\n", "\(made)")
        #expect(try await stage.servers.lab(.get, "sessions")[String(code)] != nil)
        let login = try await badgectl(
            path,
            "login \(user) --access-code \(code) --second-factor",
            input: "7391\nslot 3\n"
        )
        #expect(login.output == "c-\(code)\n", "\(login)")
        let otp = try await badgectl(path, "otp \(user) --second-factor", input: "7391\nslot 3\n")
        #expect(otp.output.utf8.count == 7, "\(otp)")
        let other = try await badgectl(path, "regcode \(user) --second-factor", input: "7391\nslot 3\n")
        #expect(other.output.utf8.count == 7, "\(other)")
        let second = try await badgectl(path, "login \(user)", input: "7391\nslot 3\n")
        #expect(second.output == "c-0\n", "\(second)")
        #expect(try await badgectl(path, "abort \(code) --backend \(url)").output == "The session is ended.\n")

        let token = try #require(try await stage.servers.lab(.post, "permit/\(user)")["token"]?.string)
        let signer = try await badgectl(path, "register-dvs \(user) --token \(token)", input: "4321\n")
        #expect(signer.output == "\(user) can sign documents.\n", "\(signer)")
        let users = try await badgectl(path, "users", input: nil)
        #expect(users.output == "\(user)  \(url)  REGISTERED  client c1  second factor  signs\n", "\(users)")
        let folder = try TemporaryFolder()
        try folder.write("contract.txt", Array("abc".utf8))
        let file = folder.path + "/contract.txt"
        let signed = try await badgectl(path, "sign \(user) \(file) --time 1700000000", input: "4321\n")
        let signature = try JSON(signed.output.utf8)
        #expect(signature["hash"]?.string == Self.hash)
        #expect(signature["epochTime"]?.int == 1_700_000_000)
        #expect(try await stage.servers.lab(.post, "verify", signature)["valid"] == .bool(true))
        #expect(try await badgectl(path, "verify \(file) \(Self.hash)", input: nil).code == 0)
        let wrong = try await badgectl(path, "verify \(file) \(String(repeating: "0", count: 64))", input: nil)
        #expect(wrong.code == 1)
        #expect(wrong.error.contains("has another hash"))
        #expect(try await badgectl(path, "delete \(user) --client-id c2 --yes").code == 1)
        #expect(try await badgectl(path, "delete \(user) --client-id c1 --yes").code == 0)
        await stage.server.stopListening()
    }

    /// The SHA-256 of `abc`.
    private static let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

    @Test("the command line says what fits an action, and what fits a user")
    func usage() async throws {
        let stage = try await MPinStage()
        let path = try stage.server.listen()
        let (user, url) = (stage.user, stage.servers.url)
        for (command, text) in [
            ("register", "mpin register needs USER"), ("users x", "unexpected argument x"),
            ("users --card", "mpin users has no option --card"), ("register x", "mpin register needs --backend"),
            ("session x", "mpin session needs --backend"), ("register-dvs x", "mpin register-dvs needs --token"),
            ("verify /dev/null 12", "12 is not a SHA-256"),
            ("sign x /dev/null --time now", "--time needs the seconds since 1970"),
        ] {
            let end = try await badgectl(path, command, input: nil)
            #expect(end.code == 2 && end.error.hasPrefix("badgectl: error: \(text)"), "\(command): \(end)")
        }
        #expect(try await badgectl(path, "register \(user) --backend \(url)", input: "7391\n").code == 0)
        for command in ["login \(user) --access-code 1", "otp \(user) --second-factor", "regcode \(user)"] {
            #expect(try await badgectl(path, command, input: nil).code == 2, "\(command)")
        }
        await stage.server.stopListening()
    }
}

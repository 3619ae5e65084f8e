// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Dispatch
import Glibc
import Host
import Synchronization
import TestSupport
import Testing
import Text

@testable import Server

@Suite("Access control", .timeLimit(.minutes(5)))
@Loop struct AccessControlTests {
    private static func policy(_ names: NameService) -> AccessPolicy {
        var warnings: [String] = []
        return AccessPolicy(
            rules: [AccessRule(.user("bob"), []), AccessRule(.user("alice"), .scan)],
            owner: 500,
            names: names,
            warnings: &warnings
        )
    }

    @Test("an unknown name is looked up again for each client, and denies until it is known")
    func lookUps() async {
        let known = Mutex<[String: UInt32]>(["alice": 1001])
        let asked = Mutex<[String]>([])
        let names = NameService(
            user: { name in
                asked.withLock { $0.append(name) }
                return known.withLock { $0[name] }
            },
            group: { _ in nil },
            userName: { $0 == 1003 ? "carol" : nil }
        )
        let access = AccessControl(Self.policy(names), names: names, timeout: .seconds(600))
        #expect(await access.permissions(uid: 1002, gid: 9, groups: []) == [])
        #expect(await access.permissions(uid: 1003, gid: 9, groups: []) == AccessPolicy.defaultPermissions)
        #expect(asked.withLock { $0 } == ["bob", "alice", "bob", "bob"])
        known.withLock { $0["bob"] = 1003 }
        #expect(await access.permissions(uid: 1003, gid: 9, groups: []) == [])
        // Now all names are known.
        #expect(await access.permissions(uid: 1002, gid: 9, groups: []) == AccessPolicy.defaultPermissions)
        #expect(asked.withLock { $0.count } == 5)
    }

    /// A name service that answers each look-up with `uid` when the semaphore is signalled.
    private static func hangingNames(_ uid: UInt32?) -> (NameService, DispatchSemaphore) {
        let release = DispatchSemaphore(value: 0)
        let names = NameService(
            user: { _ in
                release.wait()
                release.signal()
                return uid
            },
            group: { _ in nil }
        )
        return (names, release)
    }

    @Test("a directory that does not answer denies, and delays no client whose line is known")
    func hanging() async {
        let (names, release) = Self.hangingNames(nil)
        defer { release.signal() }
        let start = NameService(user: { ["alice": 1001][$0] }, group: { _ in nil })
        let access = AccessControl(Self.policy(start), names: names, timeout: .milliseconds(1))
        #expect(await access.permissions(uid: 1002, gid: 9, groups: []) == [])
        #expect(await access.permissions(uid: 1001, gid: 9, groups: []) == .scan)
        #expect(await access.permissions(uid: 0, gid: 0, groups: []) == .all)
        // More clients than look-ups at once are decided without one.
        for uid in 2000...2100 as ClosedRange<UInt32> {
            #expect(await access.permissions(uid: uid, gid: 9, groups: []) == [])
        }
    }

    @Test("clients of one user wait for one look-up together")
    func oneLookUp() async {
        let asked = Mutex(0)
        let (hanging, release) = Self.hangingNames(nil)
        defer { release.signal() }
        let names = NameService(
            user: { name in
                asked.withLock { $0 += 1 }
                return hanging.user(name)
            },
            group: { _ in nil }
        )
        let start = NameService(user: { _ in nil }, group: { _ in nil })
        let access = AccessControl(Self.policy(start), names: names, timeout: .milliseconds(1))
        for _ in 0..<10 { #expect(await access.permissions(uid: 1001, gid: 9, groups: []) == []) }
        #expect(asked.withLock { $0 } <= 1)
        #expect(await access.permissions(uid: 1002, gid: 9, groups: []) == [])
    }

    @Test("the groups of a user are looked up once for all clients of the user, and those of some users at once")
    func groups() async {
        let release = DispatchSemaphore(value: 0)
        defer { release.signal() }
        let asked = Mutex<[UInt32]>([])
        let names = NameService(
            user: { _ in nil },
            group: { $0 == "staff" ? 50 : nil },
            groups: { uid in
                asked.withLock { $0.append(uid) }
                release.wait()
                release.signal()
                return [uid, 50]
            }
        )
        var warnings: [String] = []
        let policy = AccessPolicy(
            rules: [AccessRule(.group("staff"), .scan)],
            owner: 500,
            names: names,
            warnings: &warnings
        )
        let hasty = AccessControl(policy, names: names, timeout: .milliseconds(1))
        for _ in 0..<3 {
            for uid in 2000...2100 as ClosedRange<UInt32> {
                #expect(await hasty.permissions(ofUser: uid) == [])
            }
        }
        let patient = AccessControl(policy, names: names, timeout: .seconds(600))
        let clients = (0..<3).map { _ in
            Task.immediate { @Loop in await patient.permissions(ofUser: 3000) }
        }
        release.signal()
        for client in clients { #expect(await client.value == .scan) }
        let all = asked.withLock { $0 }
        #expect(all.count <= AccessControl.maximumPending + 1)
        #expect(Set(all).count == all.count)
    }

    @Test("rules whose names are not found in time are loaded, and deny")
    func loadWithoutNames() async {
        let (names, release) = Self.hangingNames(1002)
        defer { release.signal() }
        var warnings: [String] = []
        let access = AccessControl(
            AccessPolicy(rules: [], warnings: &warnings),
            names: names,
            timeout: .milliseconds(1)
        )
        let rules = [AccessRule(.user("bob"), []), AccessRule(.others, .scan)]
        let lines = await access.load(rules, owner: 500)
        #expect(lines == ["the name service does not answer, so every name in [access] is unknown for now"])
        #expect(await access.permissions(uid: 1002, gid: 9, groups: []) == [])
    }

    @Test("SIGHUP during a look-up: the new rules decide")
    func reload() async {
        let (asked, release) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let names = NameService(
            user: { _ in
                asked.signal()
                release.wait()
                return nil
            },
            group: { _ in nil }
        )
        let start = NameService(user: { _ in nil }, group: { _ in nil })
        let access = AccessControl(Self.policy(start), names: names, timeout: .seconds(600))
        let permissions = Task { @Loop in await access.permissions(uid: 1002, gid: 9, groups: []) }
        await withCheckedContinuation { continuation in
            _ = startThread("wait") {
                asked.wait()
                continuation.resume()
            }
        }
        var warnings: [String] = []
        access.policy = AccessPolicy(
            rules: [AccessRule(.others, .admin)],
            owner: 500,
            names: start,
            warnings: &warnings
        )
        for _ in 0..<2 { release.signal() }
        #expect(await permissions.value == .admin)
        #expect(await access.permissions(uid: 1002, gid: 9, groups: []) == .admin)
    }

    @Test("the server gives a client the permissions that the look-up found")
    func client() async throws {
        let names = NameService(user: { _ in nil }, group: { _ in nil })
        var warnings: [String] = []
        let rules = [AccessRule(.others, []), AccessRule(.user("nobody-knows-me"), [])]
        let policy = AccessPolicy(rules: rules, owner: .max, names: names, warnings: &warnings)
        let server = try await TestServer(access: AccessControl(policy, names: names))
        let answer = await (try server.connect()).ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH", "ACCESS_DENIED")
        // Root has all permissions.
        #expect(answer?["msg"]?.string == (geteuid() == 0 ? "HEALTH" : "ACCESS_DENIED"))
    }
}

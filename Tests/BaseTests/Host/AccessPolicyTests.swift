// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Synchronization
import Testing

@testable import Host

@Suite("Access policy", .timeLimit(.minutes(5)))
struct AccessPolicyTests {
    private static let names = NameService(
        user: { ["alice": 1001, "bob": 1002][$0] },
        group: { ["kiosk": 50, "door": 51][$0] }
    )

    private static let rules = [
        AccessRule(.user("alice"), .readers), AccessRule(.user("bob"), []),
        AccessRule(.group("kiosk"), .readers), AccessRule(.group("door"), .scan),
        AccessRule(.others, .cards),
    ]

    @Test(
        "the user's line decides, then the union of its groups' lines, then the default",
        arguments: [
            (1001, 50, [51], Permissions.readers),
            (1002, 50, [], []),
            (1003, 50, [], .readers),
            (1003, 9, [50, 51], [.readers, .scan]),
            (1003, 9, [8], .cards),
            (0, 50, [], .all),
            (500, 50, [], .all),
        ] as [(UInt32, UInt32, [UInt32], Permissions)]
    )
    func precedence(uid: UInt32, gid: UInt32, groups: [UInt32], expected: Permissions) {
        var warnings: [String] = []
        let policy = AccessPolicy(rules: Self.rules, owner: 500, names: Self.names, warnings: &warnings)
        #expect(policy.permissions(of: .init(uid: uid, gid: gid, groups: groups)) == expected)
        #expect(warnings.isEmpty)
    }

    @Test("two lines for one user or group, by name and by number, grant what both grant, and are told")
    func repeated() {
        let names = NameService(
            user: { $0 == "ada" ? 1001 : UInt32($0) },
            group: { $0 == "door" ? 7 : UInt32($0) },
            userName: { _ in nil },
            groupName: { _ in nil },
            groups: { _ in nil }
        )
        let rules = [
            AccessRule(.user("ada"), [.readers, .cards]), AccessRule(.user("1001"), [.cards, .wallet]),
            AccessRule(.group("7"), [.cards]), AccessRule(.group("door"), []),
        ]
        for rules in [rules, rules.reversed()] {
            var warnings: [String] = []
            let policy = AccessPolicy(rules: rules, names: names, warnings: &warnings)
            #expect(policy.permissions(of: .init(uid: 1001, gid: 9, groups: [])) == .cards)
            #expect(policy.permissions(of: .init(uid: 5, gid: 7, groups: [])) == [])
            #expect(warnings.count == 2)
            #expect(warnings.allSatisfy { $0.contains("only what both lines grant is granted") })
        }
    }

    @Test("a user who runs badged by hand has all permissions, and the user of a service has those of its lines")
    func owners() throws {
        let path = "/tmp/badged-owner-\(getpid()).sock"
        let own = try ListeningSocket.bind(to: path)
        defer { own.close() }
        #expect(AccessPolicy.trustedOwner(own, user: 1000) == 1000)
        // A service user, with a socket that badged made: the children of badged have the same user.
        #expect(AccessPolicy.trustedOwner(own, user: 999) == nil)
        let passed = ListeningSocket(descriptor: socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0), path: path, file: nil)
        #expect(AccessPolicy.trustedOwner(passed, user: 999) == nil)
        #expect(AccessPolicy.trustedOwner(passed, user: 1000) == nil)

        var warnings: [String] = []
        let policy = AccessPolicy(rules: Self.rules, owner: nil, names: Self.names, warnings: &warnings)
        #expect(policy.permissions(of: .init(uid: 500, gid: 9, groups: [])) == .cards)
        #expect(policy.permissions(of: .init(uid: 0, gid: 9, groups: [])) == .all)
    }

    @Test("without rules a client can list readers, use cards, and serve the browsers of its user")
    func defaults() {
        var warnings: [String] = []
        let policy = AccessPolicy(rules: [], owner: 500, names: Self.names, warnings: &warnings)
        #expect(policy.permissions(of: .init(uid: 1001, gid: 1, groups: [])) == [.readers, .cards, .wallet, .agent])
    }

    @Test("a warning names each user and group that the system does not know")
    func unknownNames() {
        var warnings: [String] = []
        let rules = [AccessRule(.user("carol"), .all), AccessRule(.group("nobody-here"), .all)]
        _ = AccessPolicy(rules: rules, owner: 500, names: Self.names, warnings: &warnings)
        #expect(warnings.count == 2)
        #expect(
            warnings.first?.contains("user:carol ") == true && warnings.last?.contains("group:nobody-here ") == true
        )
    }

    @Test("each name is looked up once, however many are unknown")
    func lookUps() {
        let looked = Mutex(0)
        let names = NameService(
            user: { _ in
                looked.withLock { $0 += 1 }
                return nil
            },
            group: { _ in nil }
        )
        var warnings: [String] = []
        let rules = (0..<1000).map { AccessRule(.user("u\($0)"), .readers) }
        let policy = AccessPolicy(rules: rules, names: names, warnings: &warnings)
        #expect(looked.withLock { $0 } == 1000)
        #expect(warnings == policy.doubtful.map(\.warning))
        #expect(policy.doubtful.last?.setting == "[access] user:u999")
    }

    private static let unknown = [
        AccessRule(.user("bob"), []), AccessRule(.group("temps"), .readers), AccessRule(.group("kiosk"), .readers),
        AccessRule(.user("alice"), .cards), AccessRule(.others, [.readers, .cards]),
    ]

    @Test(
        "while a name is unknown, its line limits each client that the name could mean",
        arguments: [
            // uid, gid, the names that the system knows for them, permissions
            (1002, 9, nil, nil, []),
            (1002, 9, nil, "staff", []),
            (1003, 9, "carol", "staff", [.readers, .cards]),
            (1003, 9, "carol", nil, .readers),
            (1003, 50, "carol", nil, .readers),
            (1001, 9, nil, nil, .cards),
            (0, 9, nil, nil, .all),
            // The name of the id is known, and the id of the name is not.
            (1002, 9, "bob", "staff", []),
            (1003, 9, "carol", "temps", .readers),
        ] as [(UInt32, UInt32, String?, String?, Permissions)]
    )
    func denials(uid: UInt32, gid: UInt32, user: String?, group: String?, expected: Permissions) {
        var warnings: [String] = []
        let names = NameService(
            user: { ["alice": 1001][$0] },
            group: { ["kiosk": 50][$0] },
            userName: { _ in user },
            groupName: { _ in group }
        )
        let policy = AccessPolicy(rules: Self.unknown, owner: 500, names: names, warnings: &warnings)
        #expect(warnings.count == 2)
        #expect(policy.permissions(of: .init(uid: uid, gid: gid, groups: []), names: names) == expected)
    }

    @Test("a name that becomes known decides from then on")
    func laterNames() {
        var warnings: [String] = []
        let none = NameService(user: { _ in nil }, group: { _ in nil })
        let rules = [AccessRule(.user("bob"), .scan), AccessRule(.group("door"), [])]
        var policy = AccessPolicy(rules: rules, owner: 500, names: none, warnings: &warnings)
        let (bob, carol) = (
            AccessPolicy.Client(uid: 1002, gid: 9, groups: []), AccessPolicy.Client(uid: 1003, gid: 9, groups: [51])
        )
        #expect(policy.isUndecided(bob) && policy.isUndecided(carol))
        #expect(policy.permissions(of: bob, lookingUp: none) == [])
        #expect(policy.permissions(of: bob, lookingUp: Self.names) == .scan)
        #expect(!policy.isUndecided(bob) && !policy.isUndecided(carol))
        #expect(policy.permissions(of: carol) == [])
    }

    @Test("root and numeric identifiers are resolved, and other names are unknown")
    func system() {
        #expect(NameService.system.user("root") == 0 && NameService.system.group("root") == 0)
        #expect(NameService.system.user("4711") == 4711)
        #expect(NameService.system.user("no such user") == nil && NameService.system.group("") == nil)
        #expect(NameService.localGroups.group("root") == 0 && NameService.localGroups.group("no such group") == nil)
        #expect(NameService.system.userName(0) == "root" && NameService.system.groupName(0) == "root")
        #expect(NameService.system.userName(4_000_000_000) == nil && NameService.system.groupName(4_000_000_000) == nil)
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Testing

@testable import Host

@Suite("Access policy")
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
        #expect(policy.permissions(uid: uid, gid: gid, groups: groups) == expected)
        #expect(warnings.isEmpty)
    }

    @Test("without rules a client can list readers and use cards")
    func defaults() {
        var warnings: [String] = []
        let policy = AccessPolicy(rules: [], owner: 500, names: Self.names, warnings: &warnings)
        #expect(policy.permissions(uid: 1001, gid: 1, groups: []) == [.readers, .cards])
    }

    @Test("a warning names each user and group that the system does not know")
    func unknownNames() {
        var warnings: [String] = []
        let rules = [AccessRule(.user("carol"), .all), AccessRule(.group("nobody-here"), .all)]
        _ = AccessPolicy(rules: rules, owner: 500, names: Self.names, warnings: &warnings)
        #expect(warnings.count == 2)
        #expect(warnings.first?.contains("'carol'") == true && warnings.last?.contains("'nobody-here'") == true)
    }

    @Test("root and numeric identifiers are resolved, and other names are unknown")
    func system() {
        #expect(NameService.system.user("root") == 0 && NameService.system.group("root") == 0)
        #expect(NameService.system.user("4711") == 4711)
        #expect(NameService.system.user("no such user") == nil && NameService.system.group("") == nil)
    }
}

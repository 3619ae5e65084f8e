// SPDX-License-Identifier: GPL-3.0-or-later
import MPin
import Store
import TestSupport
import Testing
import Text

@testable import MPinFeature

@Suite("A time permit of M-Pin that is damaged")
struct DamagedPermitTests {
    @Test("does not end the logins of its user, is told in GET_HEALTH, and is replaced by the next one")
    func replaced() async throws {
        let folder = try TemporaryFolder()
        let name = "1000/alice"
        func state() -> StateStore { StateStore(folder: folder) }
        try await StoredUsers(state()).keep(PermitDay(7), SecretBox(Secret([1, 2, 3])), name)
        try await damageRecord(name, in: "mpin permits", of: folder.path)
        let opened = state()
        let users = StoredUsers(opened)
        let store = try await opened.required()
        func damagedNames() async throws -> [String] {
            var names: [String] = []
            for kind in StoredUsers.recordKinds { names += try await store.unreadable(kind) }
            return names
        }
        #expect(try await damagedNames() == [name])
        let damaged = try await users.permit(name)
        guard case .doubtful = damaged else {
            Issue.record("the damaged share is used")
            return
        }
        try await users.keep(PermitDay(8), SecretBox(Secret([4])), name)
        let replaced = try await users.permit(name)
        guard case .share(let day, _) = replaced else {
            Issue.record("the new share is not used")
            return
        }
        #expect(day.number == 8)
        #expect(try await damagedNames() == [])
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedMPin
import Concurrency
import Dispatch
import HTTP
import TestSupport
import Testing
import Text

/// Runs calls that block on a thread of their own, as an app without `async` functions does.
private func onThread(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        DispatchQueue(label: "app").async { continuation.resume(with: Result { try body() }) }
    }
}

private func pin(_ digits: String) -> Secret { Secret(digits.utf8) }

/// The blocking calls of BadgedMPin, each at least once.
@Suite("BadgedMPin: the blocking calls", .timeLimit(.minutes(5)))
@Loop struct BlockingTests {
    @Test("an app without async functions uses MPin")
    func mpin() async throws {
        let stage = try await MPinStage()
        let (path, name, servers) = (try stage.server.listen(), stage.user, stage.servers)
        try await onThread {
            let mpin = try MPin(socketPath: path)
            #expect(try mpin.initSDK(headers: ["X-One": "1"]).isOK)
            #expect(try mpin.addCustomHeaders(["X-Two": "2"]).isOK)
            #expect(try mpin.clearCustomHeaders().isOK)
            #expect(try mpin.addTrustedDomain("example.org").isOK)
            #expect(try mpin.testBackend(servers.url).status == .untrustedDomainError)
            #expect(try mpin.clearTrustedDomains().isOK)
            #expect(try mpin.setBackend(servers.url).isOK)
            #expect(try mpin.getClientParam("cSum") == "1")
            #expect(try !mpin.isUserExisting(name))
            let user = try #require(try mpin.makeNewUser(name, deviceName: "laptop").user)
            #expect(try mpin.startRegistration(user, userData: "u").isOK)
            #expect(try mpin.restartRegistration(user).isOK)
            #expect(try mpin.confirmRegistration(user).isOK)
            #expect(try mpin.finishRegistration(user, pin: pin("7391")).isOK)
            #expect(try mpin.listUsers().map(\.state) == [.registered])
            #expect(try mpin.listUsers(user.backend).map(\.keyUID) == [nil])
            #expect(try mpin.listBackends() == [user.backend])

            #expect(try mpin.startAuthentication(user).isOK)
            #expect(try mpin.finishAuthentication(user, pin: pin("7391")).status.isOK)
            #expect(try mpin.startAuthentication(user).isOK)
            #expect(try mpin.finishAuthenticationOTP(user, pin: pin("7391")).otp.utf8.count == 6)
            let answer = try CallExecutor().wait { try await servers.send(.post, "/rps/getAccessNumber") }
            let number = try #require(answer["accessNumber"]?.string)
            #expect(try mpin.checkAccessNumber(number).isOK)
            #expect(try mpin.startAuthentication(user).isOK)
            #expect(try mpin.finishAuthenticationAN(user, pin: pin("7391"), accessNumber: number).isOK)
            #expect(mpin.canLogout(user))
            #expect(try mpin.logout(user))
            #expect(!mpin.canLogout(user))
            #expect(try mpin.deleteUser(user).isOK)
            #expect(try mpin.destroy().isOK)
        }
        await stage.server.stopListening()
    }

    @Test("an app without async functions uses MPinMFA")
    func mfa() async throws {
        let stage = try await MPinStage()
        let (path, name, servers) = (try stage.server.listen(), stage.user, stage.servers)
        try await onThread {
            let mfa = try MPinMFA(socketPath: path)
            #expect(try mfa.initSDK().isOK)
            #expect(try mfa.setClientId("c1").isOK)
            let service = try #require(try mfa.getServiceDetails(servers.url).details)
            #expect(try mfa.setBackend(service.backendUrl).isOK)
            let code = try mfa.getAccessCode(servers.url + "/authorize").accessCode
            #expect(try mfa.getSessionDetails(code).details?.customerId == "c1")
            let user = try #require(try mfa.makeNewUser(name).user)
            #expect(try mfa.startRegistration(user, accessCode: code, regCode: "123456", pmi: "p").isOK)
            #expect(try mfa.restartRegistration(user).isOK)
            #expect(try mfa.confirmRegistration(user).isOK)
            #expect(try mfa.finishRegistration(user, pin0: pin("7391"), pin1: pin("card 17")).isOK)
            #expect(try mfa.isUserExisting(name, customerId: "c1"))

            #expect(try mfa.startAuthentication(user, accessCode: code).isOK)
            let login = try mfa.finishAuthentication(user, pin0: pin("7391"), pin1: pin("card 17"), accessCode: code)
            #expect(login.authzCode == "c-\(code)")
            #expect(try mfa.startAuthenticationOTP(user).isOK)
            #expect(try mfa.finishAuthenticationOTP(user, pin0: pin("7391"), pin1: pin("card 17")).status.isOK)
            #expect(try mfa.startAuthenticationRegCode(user).isOK)
            #expect(try mfa.finishAuthenticationRegCode(user, pin0: pin("7391"), pin1: pin("card 17")).status.isOK)
            #expect(try mfa.abortSession(code).isOK)

            let permit = try CallExecutor().wait { try await servers.lab(.post, "permit/\(name)") }
            let token = try #require(permit["token"]?.string)
            #expect(try mfa.startRegistrationDVS(user, token: token).isOK)
            #expect(try mfa.finishRegistrationDVS(user, pinDVS: pin("4321")).isOK)
            let hash = try #require(
                Hex.decode("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
            )
            #expect(try mfa.verifyDocument("abc", hash: hash))
            let signed = try mfa.sign(user, documentHash: hash, pin0: pin("4321"), epochTime: 1_700_000_000)
            #expect(signed.signature?.strHash == hash)
            #expect(try mfa.deleteUser(user).isOK)
        }
        await stage.server.stopListening()
    }

    @Test("a blocking call throws when badged cannot be reached")
    func unreachable() async throws {
        try await onThread {
            #expect(throws: ClientError.self) { try MPin(socketPath: "/nowhere/badged.sock") }
        }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedMPin
import Concurrency
import Glibc
import HTTP
import Host
import TestSupport
import Testing
import Text

@Suite("BadgedMPin", .timeLimit(.minutes(5)))
@Loop struct MPinClientTests {
    private let stage: MPinStage

    init() async throws { stage = try await MPinStage() }

    private func pin(_ digits: String) -> Secret { Secret(digits.utf8) }

    /// A client of the library, which badged serves on a socket.
    private func mpin() async throws -> MPin {
        let path = try stage.server.listen()
        let mpin = MPin(try await DaemonConnection.connect(to: path))
        #expect(try await mpin.initSDK(headers: ["X-One": "1"]).isOK)
        #expect(try await mpin.setBackend(stage.servers.url).isOK)
        return mpin
    }

    @Test("a user registers, logs in, gets a code, and logs a browser in and out")
    func wholeWay() async throws {
        let mpin = try await mpin()
        #expect(try await mpin.getClientParam("cSum") == "1")
        #expect(try await !mpin.isUserExisting(stage.user))
        let made = try await mpin.makeNewUser(stage.user, deviceName: "laptop")
        let user = try #require(made.user)
        #expect(user.state == .invalid)
        #expect(try await mpin.startRegistration(user).isOK)
        #expect(try await mpin.confirmRegistration(user).isOK)
        #expect(try await mpin.finishRegistration(user, pin: pin("7391")).isOK)
        #expect(try await mpin.listUsers().map(\.state) == [.registered])
        #expect(try await mpin.listUsers(user.backend).map(\.identity) == [stage.user])
        #expect(try await mpin.listBackends() == [Backend(url: stage.servers.url)])

        #expect(try await mpin.startAuthentication(user).isOK)
        let login = try await mpin.finishAuthentication(user, pin: pin("7391"))
        #expect(login.status.isOK)
        #expect(try JSON(login.authResultData.utf8)["userId"]?.string == stage.user)
        #expect(try await mpin.startAuthentication(user).isOK)
        let otp = try await mpin.finishAuthenticationOTP(user, pin: pin("7391"))
        #expect(otp.otp.utf8.count == 6)
        #expect(otp.expireTime - otp.nowTime == otp.ttlSeconds)

        let number = try #require(try await stage.servers.send(.post, "/rps/getAccessNumber")["accessNumber"]?.string)
        #expect(try await mpin.checkAccessNumber(number).isOK)
        #expect(!mpin.canLogout(user))
        #expect(try await mpin.startAuthentication(user).isOK)
        #expect(try await mpin.finishAuthenticationAN(user, pin: pin("7391"), accessNumber: number).isOK)
        #expect(mpin.canLogout(user))
        #expect(try await mpin.logout(user))
        #expect(!mpin.canLogout(user))
        // FALSE in the SDK.
        #expect(try await mpin.logout(user) == false)

        #expect(try await mpin.startAuthentication(user).isOK)
        let wrong = try await mpin.finishAuthentication(user, pin: pin("0000")).status
        #expect(wrong.status == .incorrectPIN)
        #expect(wrong.statusCodeAsString == "INCORRECT_PIN")
        #expect(!wrong.errorMessage.isEmpty)
        #expect(try await mpin.deleteUser(user).isOK)
        #expect(try await mpin.listUsers().isEmpty)
        #expect(try await mpin.destroy().isOK)
        await #expect(throws: ClientError.self) { try await mpin.listUsers() }
        await #expect(throws: ClientError.self) { try await mpin.isUserExisting(stage.user) }
        await #expect(throws: ClientError.self) { try await mpin.getClientParam("cSum") }
        #expect(try await mpin.testBackend(stage.servers.url).status == .flowError)
        await stage.server.stopListening()
    }

    @Test("a user of MPinMFA registers, logs in in each way, and signs")
    func wholeWayOfMFA() async throws {
        let mfa = MPinMFA(try await DaemonConnection.connect(to: try stage.server.listen()))
        #expect(try await mfa.initSDK(headers: ["X-One": "1"]).isOK)
        #expect(try await mfa.setClientId("c1").isOK)
        let service = try #require(try await mfa.getServiceDetails(stage.servers.url).details)
        #expect(service.name == "Lab")
        #expect(try await mfa.setBackend(service.backendUrl, rpsPrefix: service.rpsPrefix).isOK)
        let code = try await mfa.getAccessCode(stage.servers.url + "/authorize").accessCode
        #expect(try await mfa.getSessionDetails(code).details?.appName == "App")
        let user = try #require(try await mfa.makeNewUser(stage.user).user)
        #expect(try await mfa.startRegistration(user, accessCode: code, regCode: "123456", pmi: "p").isOK)
        #expect(try await mfa.confirmRegistration(user).isOK)
        #expect(try await mfa.finishRegistration(user, pin0: pin("7391"), pin1: pin("card 17")).isOK)
        #expect(try await mfa.isUserExisting(stage.user, customerId: "c1"))
        #expect(try await !mfa.isUserExisting(stage.user, customerId: "c2"))

        #expect(try await mfa.startAuthentication(user, accessCode: code).isOK)
        let login = try await mfa.finishAuthentication(user, pin0: pin("7391"), pin1: pin("card 17"), accessCode: code)
        #expect(login.status.isOK)
        #expect(login.authzCode == "c-\(code)")
        #expect(try await mfa.startAuthenticationOTP(user).isOK)
        let otp = try await mfa.finishAuthenticationOTP(user, pin0: pin("7391"), pin1: pin("card 17"))
        #expect(otp.otp.utf8.count == 6)
        #expect(try await mfa.startAuthenticationRegCode(user).isOK)
        let regCode = try await mfa.finishAuthenticationRegCode(user, pin0: pin("7391"), pin1: pin("card 17"))
        #expect(regCode.status.isOK)
        #expect(regCode.expireTime - regCode.nowTime == regCode.ttlSeconds)
        #expect(try await mfa.abortSession(code).isOK)

        let token = try #require(try await stage.servers.lab(.post, "permit/\(stage.user)")["token"]?.string)
        #expect(try await mfa.startRegistrationDVS(user, token: token).isOK)
        #expect(try await mfa.finishRegistrationDVS(user, pinDVS: pin("4321"), nfc: pin("tag")).isOK)
        let signer = try #require(try await mfa.listUsers().first)
        #expect(signer.canSign)
        #expect(signer.hasSecondFactor == true && signer.signerHasSecondFactor == true)
        let hash = try #require(Hex.decode("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"))
        #expect(try await mfa.verifyDocument("abc", hash: hash))
        // Longer than a line of the protocol: no answer is better than a wrong one.
        await #expect(throws: ClientError.self) {
            try await mfa.verifyDocument(String(repeating: "a", count: 2 << 20), hash: hash)
        }
        let signed = try await mfa.sign(
            user,
            documentHash: hash,
            pin0: pin("4321"),
            pin1: pin("tag"),
            epochTime: 1_700_000_000
        )
        let signature = try #require(signed.signature)
        #expect(signature.strHash == hash)
        var writer = JSONWriter()
        writer.object { object in
            object.member("hash", Hex.encode(signature.strHash))
            object.member("mpinId", Hex.encode(signature.strMpinId))
            object.member("u", Hex.encode(signature.strU))
            object.member("v", Hex.encode(signature.strV))
            object.member("publicKey", Hex.encode(signature.strPublicKey))
            object.member("epochTime", signature.epochTime)
        }
        #expect(try await stage.servers.lab(.post, "verify", try JSON(writer.bytes))["valid"] == .bool(true))
        // A second factor that is asked for and not given cancels the call, and spends no try.
        #expect(try await mfa.startAuthentication(user).isOK)
        let wrong = try await mfa.finishAuthentication(user, pin0: pin("0000"), pin1: pin(""))
        #expect(wrong.status.status == .pinInputCanceled)
        #expect(try await mfa.deleteUser(user).isOK)
        #expect(try await mfa.listUsers().isEmpty)
        await stage.server.stopListening()
    }

    @Test("after a call that failed the browser can still be logged out")
    func failedCalls() async throws {
        let peer = try ScriptedPeer { peer in
            let answers = [
                ("MPIN_FINISH_AUTHENTICATION", 0, #","canLogout":true"#), ("MPIN_FINISH_AUTHENTICATION", 11, ""),
                ("MPIN_DELETE_USER", 6, ""), ("MPIN_DESTROY", 6, ""),
            ]
            for (command, status, more) in answers {
                peer.answer(
                    command,
                    #"{"msg":"MPIN_RESULT","operation":"\#(command)","status":\#(status),"#
                        + #""statusCodeAsString":"NAME"\#(more)}"#
                )
            }
        }
        let mpin = MPin(try await DaemonConnection.connect(to: peer.path))
        let user = IUser(identity: "alice", state: .registered, backend: Backend(url: "http://b"))
        #expect(try await mpin.finishAuthenticationAN(user, pin: pin("7391"), accessNumber: "1").isOK)
        #expect(mpin.canLogout(user))
        let login = try await mpin.finishAuthenticationAN(user, pin: pin("7391"), accessNumber: "1")
        #expect(login.status == .incorrectPIN)
        #expect(try await mpin.deleteUser(user).status == .flowError)
        #expect(try await mpin.destroy().status == .flowError)
        #expect(mpin.canLogout(user))
    }

    @Test("a PIN of a wrong length cancels the call")
    func wrongLength() async throws {
        let mpin = try await mpin()
        let user = try #require(try await mpin.makeNewUser(stage.user).user)
        #expect(try await mpin.startRegistration(user).isOK)
        #expect(try await mpin.confirmRegistration(user).isOK)
        #expect(try await mpin.finishRegistration(user, pin: pin("12345")).status == .pinInputCanceled)
        #expect(try await mpin.finishRegistration(user, pin: pin("1234")).isOK)
        await stage.server.stopListening()
    }

    @Test("a cancelled task cancels its call")
    func cancellation() async throws {
        let mpin = try await mpin()
        let url = stage.servers.url("settings-hang")
        let call = Task { try await mpin.testBackend(url).status }
        call.cancel()
        #expect(try await call.value == .networkError)
        #expect(try await mpin.testBackend(stage.servers.url).isOK)
        await stage.server.stopListening()
    }

    @Test("headers and trusted domains reach badged")
    func settings() async throws {
        let mpin = try await mpin()
        #expect(try await mpin.addCustomHeaders(["X-Two": "2"]).isOK)
        #expect(try await mpin.clearCustomHeaders().isOK)
        #expect(try await mpin.addTrustedDomain("example.org").isOK)
        #expect(try await mpin.testBackend(stage.servers.url).status == .untrustedDomainError)
        #expect(try await mpin.clearTrustedDomains().isOK)
        #expect(try await mpin.testBackend(stage.servers.url).isOK)
        await stage.server.stopListening()
    }

    @Test("a client without the permission gets accessDenied")
    func permission() async throws {
        let stage = try await MPinStage(permissions: [.readers, .cards])
        let path = try stage.server.listen()
        let mpin = MPin(try await DaemonConnection.connect(to: path))
        await #expect(
            throws: ClientError.accessDenied(command: "MPIN_INIT", missing: ["mpin"], granted: ["readers", "cards"])
        ) {
            try await mpin.initSDK()
        }
        await stage.server.stopListening()
    }
}

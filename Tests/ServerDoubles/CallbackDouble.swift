// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import EIDServer
import Synchronization
package import Text

/// The server of a fake dapp, which gets callbacks.
package final class CallbackDouble: Sendable {
    package enum Fault: String, Sendable, CaseIterable {
        /// Code 7 with a message.
        case refused
        case redirect, huge, reset, half, wrongTypes, notJSON, status500
        /// No answer until `release`.
        case silent
    }

    private struct State {
        var fault: Fault?
        var bodies: [JSON] = []
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private final class Core: Sendable {
        let state = Mutex(State())
        let gate = DispatchSemaphore(value: 0)
    }

    private let core = Core()
    private let server: WebServer

    package init(isSecure: Bool = false, isExpired: Bool = false) throws {
        let core = core
        server = try WebServer(isSecure: isSecure, isExpired: isExpired) { request in Self.answer(request, core) }
    }

    deinit { core.gate.signal() }

    package var url: String { server.address + "/callback" }
    /// The certificate of the authority in PEM.
    package var authority: String { server.authority }
    /// What was posted.
    package var bodies: [JSON] { core.state.withLock { $0.bodies } }

    package func fail(_ fault: Fault?) { core.state.withLock { $0.fault = fault } }

    package func release() { core.gate.signal() }

    /// Waits for the first callback.
    package func arrival() async {
        await withCheckedContinuation { continuation in
            let isThere = core.state.withLock { state in
                if !state.bodies.isEmpty { return true }
                state.waiters.append(continuation)
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    private static func answer(_ request: WebServer.Request, _ core: Core) -> WebServer.Answer {
        let (fault, waiters) = core.state.withLock { state in
            state.bodies.append((try? JSON(request.body)) ?? .null)
            defer { state.waiters = [] }
            return (state.fault, state.waiters)
        }
        for waiter in waiters { waiter.resume() }
        let good = Array(#"{"code":0,"message":""}"#.utf8)
        switch fault {
        case nil: return WebServer.Answer(good)
        case .refused: return WebServer.Answer(Array(#"{"code":7,"message":"unknown user"}"#.utf8))
        case .redirect: return WebServer.Answer(status: 302, headers: [("Location", "https://localhost:1/")])
        case .huge: return WebServer.Answer([UInt8](repeating: 0x20, count: 64 << 20))
        case .reset: return WebServer.Answer(delivery: .reset)
        case .half: return WebServer.Answer(good, delivery: .half)
        case .wrongTypes: return WebServer.Answer(Array(#"{"code":"0"}"#.utf8))
        case .notJSON: return WebServer.Answer(Array("OK".utf8))
        case .status500: return WebServer.Answer(status: 500, good)
        case .silent:
            core.gate.wait()
            core.gate.signal()
            return WebServer.Answer(delivery: .reset)
        }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import Text

/// How a line becomes a command, and the command an answer or a workflow.
extension Session {
    func handle(_ line: LineBuffer.Line) {
        switch line {
        case .text(let text): handle(text)
        case .tooLong:
            let (bytes, reason) = lineLimit
            let error = "line too long (more than \(bytes) bytes\(reason))"
            answer(Refusal.Invalid(error: error), nil)
        }
    }

    private func handle(_ line: UnsafeRawBufferPointer) {
        lastUse = Loop.now
        lineBytes = Self.workFactor * line.count
        let command: Command
        do throws(Malformed) {
            command = try Command(scanning: line)
        } catch {
            return answer(Refusal.Invalid(error: error.text), nil)
        }
        guard let name = command.name else {
            return answer(Refusal.Invalid(error: "Command cannot be undefined"), to: command)
        }
        guard let spec = server.commands[name], level >= spec.level else {
            return answer(Refusal.UnknownCommand(error: name), to: command)
        }
        guard permissions.contains(spec.permission) else { return deny(spec, command) }
        Requester.$uid.withValue(uid) { perform(Call(self, spec, command)) }
    }

    private func deny(_ spec: CommandSpec, _ command: Command) {
        let missing = spec.permission.subtracting(permissions).words
        // Once for each command, so that a client cannot fill the log.
        if refused.insert(spec.name).inserted {
            let words = missing.joined(separator: ", ")
            log(.notice, "\(name): \(spec.name) refused, [access] does not grant \(words)")
        }
        answer(Refusal.AccessDenied(error: spec.name, missing: missing, granted: permissions.words), to: command)
    }

    private func perform(_ call: Call) {
        guard workflow == nil || !call.spec.isForIdle else {
            return answer(Refusal.BadState(error: call.name), to: call)
        }
        switch call.spec.form {
        case .now(let method):
            do throws(Failure) {
                send(try method(call), call)
            } catch {
                refuse(call, error)
            }
        case .later(let method):
            // The line stays in the buffer meanwhile.
            deferLines { [self] in
                do throws(Failure) {
                    let reply = try await method(call)
                    Loop.shared.preconditionIsolated()
                    send(reply, call)
                } catch {
                    Loop.shared.preconditionIsolated()
                    refuse(call, error)
                }
            }
        }
    }

    private func send(_ reply: Reply, _ call: Call) {
        switch reply.content {
        case .none: break
        case .message(let message):
            answer(message, to: call)
            reply.then?()
        case .workflow(let name, let first, let refusal, let body):
            let spec = call.spec
            let refused = refusal ?? { [self] failure in spec.refusal(failure, self) }
            // While an `async` method waited, the session may have ended, a browser may have started a workflow in it, or
            // its client may have lost the permission.
            guard connection != .closed, workflow == nil else {
                return answer(Refusal.BadState(error: call.name), to: call)
            }
            guard permissions.contains(call.spec.permission) else { return deny(call.spec, call.command) }
            if let reason = workflowRefusal() {
                return send(refused(Failure(.tooManyWorkflows, reason)), call)
            }
            if let flag = call.arguments["status"]?.bool { wantsStatus = flag }
            start(name, needs: spec.permission, announcedBy: first) { [self] workflow in
                do throws(Failure) {
                    let reply = try await body(workflow)
                    Loop.shared.preconditionIsolated()
                    server.endedWorkflows.add(name, "success")
                    return reply
                } catch {
                    Loop.shared.preconditionIsolated()
                    let isDenied = workflow.isDenied && error.code == .cancelled
                    let failure = isDenied ? Failure(.accessDenied, Workflow.denied) : error
                    server.endedWorkflows.add(name, failure.code == .cancelled ? "cancelled" : "failure")
                    note(failure, spec)
                    return refused(failure)
                }
            }
        }
    }

    private func refuse(_ call: Call, _ failure: Failure) {
        note(failure, call.spec)
        guard failure.code != .badState else { return answer(Refusal.BadState(error: call.name), to: call) }
        if case .message(let message) = call.spec.refusal(failure, self).content {
            answer(message, to: call)
        }
    }

    /// Logs why a command has failed. What the client has caused is not notable.
    private func note(_ failure: Failure, _ spec: CommandSpec) {
        switch failure.code {
        case .badState, .wrongArgument, .missingArgument: break
        case .cancelled: log(.info, "\(name): \(spec.name) ended, cancelled")
        default: log(.notice, "\(name): \(spec.name) ended, \(failure.logText)")
        }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later

/// `badgectl completion`: makes shell completions from the command table.
enum CompletionCommand {
    static let shells = ["bash", "zsh", "fish"]

    static let spec = ShellCommand(
        name: "completion",
        summary: "write the completions for a shell",
        operand: ValueSpec("SHELL", .words(shells)),
        details: ["For bash: badgectl completion bash > /etc/bash_completion.d/badgectl"],
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws {
        Output.message(script(for: invocation.operand))
    }

    static func script(for shell: String) -> String {
        switch shell {
        case "bash": bash
        case "zsh": zsh
        default: fish
        }
    }

    private static let commands = CommandTable.commands
    private static let names = commands.map(\.name).joined(separator: " ")

    /// The options that take a value, each name once.
    private static let valueOptions: [(name: String, value: ValueSpec)] = {
        var seen: Set<String> = []
        return (CommandTable.global + commands.flatMap(\.options)).compactMap { option in
            guard let value = option.value, seen.insert(option.name).inserted else { return nil }
            return (option.name, value)
        }
    }()

    /// The only valid values, in one line.
    private static func words(_ value: ValueSpec?) -> String { value?.choices?.joined(separator: " ") ?? "" }

    private static func names(_ options: [OptionSpec]) -> String { options.map(\.name).joined(separator: " ") }

    /// The actions of a command whose arguments a shell completes, by what it offers.
    private static func completed(_ command: ShellCommand) -> [(names: [String], value: ValueSpec)] {
        [ValueSpec.Completion.files, .keys, .devices].compactMap { completion in
            let names = command.actions.filter { $0.completion == completion }.map(\.name)
            return names.isEmpty ? nil : (names, ValueSpec("", completion))
        }
    }

    private static var bash: String {
        func completions(_ value: ValueSpec?) -> String {
            switch value?.completion {
            case .files: "COMPREPLY=($(compgen -f -- \"$current\"))"
            case .words, .commands:
                "COMPREPLY=($(compgen -W '\(words(value))' -- \"$current\"))"
            case .readers: "_badgectl_names readers"
            case .keys: "_badgectl_names keys list"
            case .devices: "_badgectl_names remote list"
            case .actions: "case $action in \(actionCases) *) COMPREPLY=() ;; esac"
            case .nothing, nil: "COMPREPLY=()"
            }
        }
        // The actions of each command that has some.
        var actionCases: String {
            commands.filter { !$0.actions.isEmpty }.map {
                "\($0.name)) COMPREPLY=($(compgen -W '\($0.actions.map(\.name).joined(separator: " "))' -- \"$current\")) ;;"
            }.joined(separator: " ")
        }
        // What follows the first word behind the command.
        func others(_ command: ShellCommand) -> String {
            guard !command.actions.isEmpty else { return completions(command.others) }
            let cases = completed(command).map { names, value in
                "\(names.joined(separator: "|"))) \(completions(value)) ;; "
            }
            return cases.isEmpty ? "COMPREPLY=()" : "case $action in \(cases.joined())*) COMPREPLY=() ;; esac"
        }
        let values = valueOptions.map { "        \($0.name)) \(completions($0.value)); return ;;" }
        let cases = commands.map { command in
            "        \(command.name)) words='\(names(command.options + CommandTable.global))'; "
                + "if [[ -z $action ]]; then \(completions(command.operand)); else \(others(command)); fi ;;"
        }
        return """
            # bash completion for badgectl
            # The names of readers, keys and devices may have spaces, so they are quoted.
            _badgectl_names() {
                local name quoted
                COMPREPLY=()
                while IFS= read -r name; do
                    printf -v quoted %q "$name"
                    case $name in "$current"*) COMPREPLY+=("$quoted"); continue ;; esac
                    case $quoted in "$current"*) COMPREPLY+=("$quoted") ;; esac
                done < <("${COMP_WORDS[0]}" ${socket:+"--socket=$socket"} "$@" --names 2>/dev/null)
            }
            _badgectl() {
                local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= action= words i socket=
                # bash splits --socket=PATH into three words.
                for ((i = 1; i + 1 < COMP_CWORD; i++)); do
                    [[ ${COMP_WORDS[i]} = --socket ]] || continue
                    socket=${COMP_WORDS[i+1]}
                    [[ $socket != = ]] || socket=${COMP_WORDS[i+2]}
                done
                case $previous in
            \(values.joined(separator: "\n"))
                esac
                for ((i = 1; i < COMP_CWORD; i++)); do
                    case ${COMP_WORDS[i]} in
                        \(valueOptions.map(\.name).joined(separator: "|"))) ((i++)) ;;
                        -*) ;;
                        *) [[ -z $command ]] || { action=${COMP_WORDS[i]}; break; }; command=${COMP_WORDS[i]} ;;
                    esac
                done
                case $command in
            \(cases.joined(separator: "\n"))
                    *) words='\(names) \(names(CommandTable.global))'; COMPREPLY=() ;;
                esac
                COMPREPLY+=($(compgen -W "$words" -- "$current"))
            }
            complete -F _badgectl badgectl
            """
    }

    private static var zsh: String {
        func action(_ value: ValueSpec) -> String {
            switch value.completion {
            case .files: "_files"
            case .words, .commands: "(\(words(value)))"
            case .readers: "_badgectl_readers"
            case .keys: "_badgectl_keys"
            case .devices: "_badgectl_devices"
            case .actions: "_badgectl_actions"
            case .nothing: " "
            }
        }
        func argument(_ option: OptionSpec) -> String {
            let value = option.value.map { ":\($0.name):\(action($0))" } ?? ""
            // With =, the value may be the next word, too.
            return "'\(option.name)\(option.value == nil ? "" : "=")[\(option.summary)]\(value)'"
        }
        let global = CommandTable.global.map(argument).joined(separator: " ")
        let actions = commands.filter { !$0.actions.isEmpty }.map {
            "        \($0.name)) compadd \($0.actions.map(\.name).joined(separator: " ")) ;;"
        }.joined(separator: "\n")
        let list = commands.map { "'\($0.name):\($0.summary)'" }.joined(separator: " ")
        let cases = commands.map { command in
            let operand = command.operand.map { " ':\($0.name):\(action($0))'" } ?? ""
            let arguments = ([global] + command.options.map(argument)).joined(separator: " ")
            let after = completed(command).map { names, value in
                "[[ -z ${words[(R)(\(names.joined(separator: "|")))]} ]] || \(action(value))"
            }.joined(separator: "; ")
            let others =
                command.others.map { value in
                    let other = after.isEmpty ? action(value) : "{ \(after) }"
                    return " '*:\(value.name):\(other)'"
                } ?? ""
            return "                \(command.name)) _arguments \(arguments)\(operand)\(others) ;;"
        }
        return """
            #compdef badgectl
            _badgectl_names() {
                local -a names
                local socket=$_badgectl_socket
                names=(${(f)"$(${_badgectl_program:-badgectl} ${socket:+--socket=$socket} "$@" --names 2>/dev/null)"})
                compadd -a names
            }
            _badgectl_readers() { _badgectl_names readers }
            _badgectl_keys() { _badgectl_names keys list }
            _badgectl_devices() { _badgectl_names remote list }
            _badgectl_actions() {
                case $words[2] in
            \(actions)
                esac
            }
            _badgectl() {
                # The options before the command are not in opt_args of the command.
                local _badgectl_program=$words[1] _badgectl_socket=${(Q)${words[(R)--socket=*]}#--socket=}
                local -i at=${words[(I)--socket]}
                (( at )) && _badgectl_socket=${(Q)words[at+1]}
                local line state
                _arguments -C \(global) '1:command:->command' '*::argument:->argument'
                case $state in
                    command)
                        local -a commands=(\(list))
                        _describe command commands ;;
                    argument)
                        case $line[1] in
            \(cases.joined(separator: "\n"))
                        esac ;;
                esac
            }
            # Loaded from fpath, the file is the body of the function. Sourced, it only defines the function.
            if [[ $funcstack[1] == _badgectl ]]; then _badgectl "$@"; else compdef _badgectl badgectl; fi
            """
    }

    private static var fish: String {
        func values(_ value: ValueSpec) -> String {
            switch value.completion {
            case .files: " -r -F"
            case .words, .commands: " -x -a '\(words(value))'"
            case .readers: " -x -a '(__badgectl_names readers)'"
            case .keys: " -x -a '(__badgectl_names keys list)'"
            case .devices: " -x -a '(__badgectl_names remote list)'"
            case .nothing, .actions: " -x"
            }
        }
        func line(_ option: OptionSpec, _ condition: String) -> String {
            let value = option.value.map(values) ?? ""
            return "complete -c badgectl\(condition) -l \(option.name.dropFirst(2))\(value) -d '\(option.summary)'"
        }
        let readers = """
            function __badgectl_names
                set -l words (commandline -opc)
                set -l socket (string match -- '--socket=*' $words)
                set -l at (contains -i -- --socket $words); and set socket --socket=$words[(math $at + 1)]
                badgectl $socket $argv --names 2>/dev/null
            end
            """
        // The words that are no options: the command, then how many there are, then which the second may be.
        let command = """
            function __badgectl_command
                set -l words
                set -l skip 0
                for word in (commandline -opc)[2..]
                    if test $skip = 1
                        set skip 0
                    else if contains -- $word \(valueOptions.map(\.name).joined(separator: " "))
                        set skip 1
                    else if not string match -q -- '-*' $word
                        set -a words $word
                    end
                end
                test "$words[1]" = "$argv[1]"; or return 1
                test -z "$argv[2]"; or test "$argv[2]" -le (count $words); or return 1
                test "$argv[2]" != 1; or test (count $words) = 1; or return 1
                test -z "$argv[3]"; or contains -- "$words[2]" $argv[3..]
            end
            """
        var lines = ["# fish completion for badgectl", readers, command, "complete -c badgectl -f"]
        lines += CommandTable.global.map { line($0, "") }
        for command in commands {
            lines.append(
                "complete -c badgectl -n __fish_use_subcommand -a \(command.name) -d '\(command.summary)'"
            )
            // A command is the first word; its name may be an argument of help.
            let condition = " -n '__badgectl_command \(command.name)'"
            lines += command.options.map { line($0, condition) }
            guard let operand = command.operand else { continue }
            switch operand.completion {
            case .files: lines.append("complete -c badgectl\(condition) -F")
            case .words, .commands:
                let first = " -n '__badgectl_command \(command.name) 1'"
                lines.append("complete -c badgectl\(first) -a '\(words(operand))'")
            case .keys: lines.append("complete -c badgectl\(condition)\(values(operand))")
            case .nothing, .readers, .devices, .actions: break
            }
            switch command.others?.completion {
            case .files: lines.append("complete -c badgectl\(condition) -F")
            case .actions:
                for other in commands where !other.actions.isEmpty {
                    let second = " -n '__badgectl_command \(command.name) 2 \(other.name)'"
                    let names = other.actions.map(\.name).joined(separator: " ")
                    lines.append("complete -c badgectl\(second) -a '\(names)'")
                }
            case .nothing, .words, .commands, .readers, .keys, .devices, nil: break
            }
            for (names, value) in completed(command) {
                let second = " -n '__badgectl_command \(command.name) 2 \(names.joined(separator: " "))'"
                lines.append("complete -c badgectl\(second)\(value.completion == .files ? " -F" : values(value))")
            }
        }
        return lines.joined(separator: "\n")
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later

/// Shell completions, made from the command table.
enum Completion {
    static let shells = ["bash", "zsh", "fish"]

    @Sendable static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        Output.line(script(for: invocation.operand ?? ""))
        return .done
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
    private static let allOptions = CommandTable.global + commands.flatMap(\.options)

    /// zsh's list of words; none: anything.
    private static func words(_ choices: [String]) -> String {
        choices.isEmpty ? " " : "(\(choices.joined(separator: " ")))"
    }

    private static func names(_ options: [OptionSpec]) -> String { options.map(\.name).joined(separator: " ") }

    private static var bash: String {
        let paths = allOptions.filter(\.isPath).map(\.name).joined(separator: "|")
        let values = allOptions.filter { $0.value != nil && !$0.isPath }.map(\.name).joined(separator: "|")
        let valued = allOptions.filter { $0.value != nil }.map(\.name).joined(separator: "|")
        let cases = commands.map { command in
            let words = names(command.options + CommandTable.global)
            let operands = command.operand.map { $0.choices.map { $0 + " " }.joined() } ?? ""
            return "        \(command.name)) words='\(operands)\(words)' ;;"
        }
        return """
            # bash completion for badgectl
            _badgectl() {
                local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= words i
                case $previous in
                    \(paths)) COMPREPLY=($(compgen -f -- "$current")); return ;;
                    \(values)) COMPREPLY=(); return ;;
                esac
                for ((i = 1; i < COMP_CWORD; i++)); do
                    case ${COMP_WORDS[i]} in
                        \(valued)) ((i++)) ;;
                        -*) ;;
                        *) command=${COMP_WORDS[i]}; break ;;
                    esac
                done
                case $command in
            \(cases.joined(separator: "\n"))
                    *) words='\(names) \(names(CommandTable.global))' ;;
                esac
                COMPREPLY=($(compgen -W "$words" -- "$current"))
            }
            complete -F _badgectl badgectl
            """
    }

    private static var zsh: String {
        func argument(_ option: OptionSpec) -> String {
            let value = option.value.map { ":\($0):" + (option.isPath ? "_files" : "") } ?? ""
            return "'\(option.name)[\(option.summary)]\(value)'"
        }
        let global = CommandTable.global.map(argument).joined(separator: " ")
        let list = commands.map { "'\($0.name):\($0.summary)'" }.joined(separator: " ")
        let cases = commands.map { command in
            let operand = command.operand.map { " ':\($0.name):\(words($0.choices))'" } ?? ""
            let arguments = ([global] + command.options.map(argument)).joined(separator: " ")
            return "                \(command.name)) _arguments \(arguments)\(operand) ;;"
        }
        return """
            #compdef badgectl
            _badgectl() {
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
            # Loaded from fpath the file is the function; sourced it only defines it.
            if [[ $funcstack[1] == _badgectl ]]; then _badgectl "$@"; else compdef _badgectl badgectl; fi
            """
    }

    private static var fish: String {
        func line(_ option: OptionSpec, _ condition: String) -> String {
            let value = option.value == nil ? "" : option.isPath ? " -r -F" : " -x"
            return "complete -c badgectl\(condition) -l \(option.name.dropFirst(2))\(value) -d '\(option.summary)'"
        }
        var lines = ["# fish completion for badgectl", "complete -c badgectl -f"]
        lines += CommandTable.global.map { line($0, "") }
        for command in commands {
            lines.append(
                "complete -c badgectl -n __fish_use_subcommand -a \(command.name) -d '\(command.summary)'"
            )
            let condition = " -n '__fish_seen_subcommand_from \(command.name)'"
            lines += command.options.map { line($0, condition) }
            if let operand = command.operand, !operand.choices.isEmpty {
                lines.append("complete -c badgectl\(condition) -a '\(operand.choices.joined(separator: " "))'")
            }
        }
        return lines.joined(separator: "\n")
    }
}

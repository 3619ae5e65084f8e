// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// `badgectl completion`: writes the completions for a shell. They ask `badgectl __complete` for the words.
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

    private static let bash = #"""
        # bash completion for badgectl
        _badgectl() {
            local kind word
            COMPREPLY=()
            {
                IFS= read -r kind
                # The names of readers, keys and devices may have spaces.
                while IFS=$'\t' read -r word _; do
                    printf -v word %q "$word"
                    COMPREPLY+=("$word")
                done
            } < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
            if [[ $kind = files ]]; then
                compopt -o filenames 2>/dev/null
                mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
            fi
        }
        complete -F _badgectl badgectl
        """#

    private static let zsh = #"""
        #compdef badgectl
        _badgectl() {
            local line
            local -a lines names shown
            lines=("${(@f)$(${(Q)words[1]} __complete "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
            if [[ $lines[1] == files ]]; then
                compset -P '--*='
                _files
                return
            fi
            for line in "${(@)lines[2,-1]}"; do
                names+=("${line%%$'\t'*}")
                shown+=("${line/$'\t'/  -- }")
            done
            compadd -l -d shown -a names
        }
        # Loaded from fpath, the file is the body of the function. Sourced, it only defines the function.
        if [[ $funcstack[1] == _badgectl ]]; then _badgectl "$@"; else compdef _badgectl badgectl; fi
        """#

    private static let fish = #"""
        # fish completion for badgectl
        function __badgectl_complete
            set -l words (commandline -opc)
            set -l current (commandline -ct)
            set -l lines (badgectl __complete $words[2..] "$current" 2>/dev/null)
            test "$lines[1]" = $argv[1]; or return
            for line in $lines[2..]
                echo $line
            end
        end
        complete -c badgectl -f -a '(__badgectl_complete words)'
        complete -c badgectl -n '__badgectl_complete files' -F
        """#
}

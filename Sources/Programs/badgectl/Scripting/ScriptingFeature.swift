// SPDX-License-Identifier: GPL-3.0-or-later

/// The commands for scripts and shells.
let scriptingFeature = Feature(commands: [SendCommand.spec, CompletionCommand.spec])

// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Text

func pkocVectors() throws -> JSON { try vectorFile("pkoc-nfc.json") }

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# reference.sh SYMBOLS FOLDER: makes the reference of the client library with docc, as
# FOLDER/badged.doccarchive. SYMBOLS has the symbol graphs that the compiler emits. The reference
# has every public symbol of the modules that an app imports.
set -eu
symbols=$(realpath "$1") folder=$(realpath -m "$2")
cd "$(dirname "$0")"

docc=$(command -v docc || dirname "$(readlink -f "$(command -v swift)")" | sed 's|$|/docc|')
rm -rf "$folder"
modules="BadgedClient BadgedSDKWrapper BadgedOSTWallet BadgedMYKEYWallet BadgedMPin BadgedOrigoKeys Text"
for module in $modules; do
    mkdir -p "$folder/$module.symbols"
    cp "$symbols/$module".symbols.json "$symbols/$module"@*.symbols.json "$folder/$module.symbols" 2>/dev/null || true
    catalogue=$module/$module.docc
    [ -d "$catalogue" ] || catalogue=
    # shellcheck disable=SC2086  # an argument or none
    "$docc" convert $catalogue --additional-symbol-graph-dir "$folder/$module.symbols" --warnings-as-errors \
        --fallback-display-name $module --fallback-bundle-identifier badged.$module --output-dir "$folder/$module.doccarchive"
done
"$docc" merge "$folder"/*.doccarchive --synthesized-landing-page-name badged --output-path "$folder/badged.doccarchive"
rm -r "$folder"/*.symbols
for module in $modules; do rm -r "$folder/$module.doccarchive"; done

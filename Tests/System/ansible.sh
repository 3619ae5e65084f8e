#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The Ansible role of docs/examples/fleet: ansible-lint, and the syntax of the playbook. ansible-run.sh runs it.
. "$(dirname "$0")/lib.sh"
needs ansible-playbook ansible-lint
cp -R "$root/docs/examples/fleet/ansible" "$work/ansible"
cd "$work/ansible"
export HOME="$work"
check "ansible-lint finds no fault" ansible-lint --nocolor --offline --profile production site.yml remove.yml roles/badged hosts.yml
check "ansible-playbook accepts the syntax" ansible-playbook --syntax-check -i hosts.yml site.yml remove.yml
ansible-playbook --list-tasks -i hosts.yml site.yml >"$work/tasks"
check "the playbook has the role" holds "$work/tasks" 'badged : Check the settings of badged-mqtt'
finish

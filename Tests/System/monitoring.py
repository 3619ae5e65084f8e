# SPDX-License-Identifier: GPL-3.0-or-later
"""The queries of the rules and of the dashboard, with the metrics that a badged prints which has done a little of everything.

Started by monitoring.sh with the folder of the programs, a folder for files, and the folder with rules and dashboard.
"""

import json
import os
import re
import subprocess
import sys
import urllib.request

from harness import Client, Daemon, check, children, finish, free_port, until

binaries, work, fleet = sys.argv[1:]
NAME = re.compile(r"\b(?:badged|node)_[a-z0-9_]+")

# MARK: What badged prints
path, state, key = (os.path.join(work, name) for name in ("badged.sock", "state", "site.key"))
os.mkdir(state, mode=0o700)
with open(key, "wb") as file:
    file.write(os.urandom(32))
os.chmod(key, 0o600)
with open(os.path.join(work, "allow.list"), "w", encoding="utf-8"):
    pass
configuration = os.path.join(work, "badged.conf")
with open(configuration, "w", encoding="utf-8") as file:
    file.write(f"[credentials]\nallow_list = {work}/allow.list\nsite_key = {key}\n[server]\nmax_clients = 8\n")
daemon = Daemon(f"{binaries}/badged", ["--virtual", "--no-pcsc", "--no-nfc", "--socket", path, "--config", configuration], work,
                environment={"STATE_DIRECTORY": state})
clients = [Client(path) for number in range(8)]
until(lambda: clients[0].ask("STATUS", cmd="GET_STATUS"))
refused = Client(path)
check("a client too much is refused", refused.wait_for("nothing") is None)
# Room for badgectl and badged-mqtt.
for one in (clients.pop(), clients.pop()):
    one.close()
client = clients[0]
client.ask("CREDENTIALS", cmd="START_CREDENTIALS")
client.ask("SCAN", cmd="START_SCAN")
client.ask("CHANGE_PIN", cmd="RUN_CHANGE_PIN")
client.wait_for("INSERT_CARD")
client.send(cmd="SET_CARD", name="Simulator", card={"kind": "pkoc"})
client.wait_for("CREDENTIAL")
client.send(cmd="CANCEL")
client.wait_for("CHANGE_PIN")
client.send(cmd="RUN_CHANGE_PIN")
client.wait_for("CHANGE_PIN")
daemon.reload()
# No broker listens at this port, which changes no name of a metric.
run, queue, broker = (os.path.join(work, name) for name in ("run", "queue", "mqtt.conf"))
os.mkdir(run)
os.mkdir(queue, mode=0o700)
with open(broker, "w", encoding="utf-8") as file:
    file.write(f"[broker]\nurl = mqtt://127.0.0.1:{free_port()}\n[publish]\ncredentials = hashed\nsite_key = {key}\n"
               f"[server]\nsocket = {path}\n[queue]\nfolder = {queue}\n")
children.append(subprocess.Popen([f"{binaries}/badged-mqtt", "--config", broker], env={**os.environ, "RUNTIME_DIRECTORY": run},
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
mqtt = os.path.join(run, "metrics.json")
check("badged-mqtt writes its metrics", until(lambda: os.path.exists(mqtt) and os.path.getsize(mqtt) > 0))
os.mkdir(os.path.join(work, "textfile"))
prom = os.path.join(work, "textfile", "badged.prom")
subprocess.run([f"{binaries}/badgectl", "--socket", path, "metrics", "--mqtt", mqtt, "--output", prom], check=True)
with open(prom, encoding="utf-8") as file:
    printed = file.read()

# MARK: What Prometheus gets
port = free_port()
children.append(subprocess.Popen(
    ["prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
     f"--collector.textfile.directory={work}/textfile", f"--web.listen-address=127.0.0.1:{port}"], stderr=subprocess.DEVNULL))


def scrape():
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            return answer.read().decode()
    except OSError:
        return ""


until(lambda: "badged_up 1" in scrape())
scraped = scrape()
families = {line.split()[2]: line.split()[3] for line in printed.splitlines() if line.startswith("# TYPE")}
names = set(families) | {"node_textfile_mtime_seconds"}
names |= {name + suffix for name, kind in families.items() if kind == "histogram" for suffix in ("_bucket", "_sum", "_count")}
series = {}
for line in scraped.splitlines():
    if match := re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line):
        labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
        series.setdefault(match[1], []).append((labels, match[3]))

# MARK: Rules
with open(os.path.join(fleet, "badged.rules.yml"), encoding="utf-8") as file:
    rules = file.read()
with open(os.path.join(fleet, "badged.rules.test.yml"), encoding="utf-8") as file:
    tests = file.read()
expressions = {name for line in rules.splitlines() if not line.strip().startswith("#") for name in NAME.findall(line)}
check("the rules use metrics that badged prints", expressions and not {name for name in expressions if name not in names},
      expressions - names)
tested = set(re.findall(r"series: '(\w+)", tests))
check("the tests of the rules use metrics that badged prints", tested <= names, tested - names)
used = [(name, set(re.findall(r"(\w+)=", labels)) - {"instance"}) for name, labels in re.findall(r"series: '(\w+)\{(.*?)\}'", tests)]
wrong = [(name, labels) for name, labels in used if not any(labels <= set(one) | {"instance"} for one, _ in series.get(name, []))]
check("with the labels that badged prints", not wrong, wrong)
alerts = set(re.findall(r"alert: (\w+)", rules))
raised = {name for part in tests.split("alertname: ")[1:] for name in re.findall(r"^(\w+)\n\s+exp_alerts", part)}
check("each alert is raised in a test", alerts == raised, alerts ^ raised)

# MARK: Dashboard
with open(os.path.join(fleet, "dashboard.json"), encoding="utf-8") as file:
    dashboard = json.load(file)
panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
queries = {(panel["title"], target["refId"]): target["expr"] for panel in panels for target in panel["targets"]}
queries |= {(one["name"], ""): one["expr"] for one in dashboard["annotations"]["list"]}
asked = {name for query in queries.values() for name in NAME.findall(query)}
check("the dashboard uses metrics that badged prints", asked and asked <= names, asked - names)
variables = {one["name"] for one in dashboard["templating"]["list"]}
text = json.dumps(dashboard)
foreign = set(re.findall(r"\$\{?(\w+)", text)) - variables - {"__rate_interval", "__all"}
check("each variable is one of the dashboard or of Grafana", not foreign, foreign)
for one in dashboard["templating"]["list"]:
    if match := re.fullmatch(r"label_values\((\w+), (\w+)\)", one["query"]):
        check(f"the variable {one['name']} has values", match[1] in names, one)
check("each panel has a number of its own", len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"]))
cells = [(x, y) for panel in dashboard["panels"] for place in [panel["gridPos"]]
         for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])]
check("no panel covers another, and none is wider than the page", len(set(cells)) == len(cells) and max(x for x, _ in cells) < 24)
check("each panel has a description and a unit",
      all(panel["description"] and panel["fieldConfig"]["defaults"]["unit"] for panel in panels))
legends = [(query, label) for panel in panels for target in panel["targets"] for query in [target["expr"]]
           for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
           if f"by ({label}" not in query and f", {label})" not in query and label != "instance"]
check("each label of a legend is one of its query", not legends, legends)

# MARK: Each query has a result, with two hosts whose counters grow
lines = ["rule_files: []", "evaluation_interval: 1m", "tests:", "  - interval: 1m", "    input_series:"]
for name, samples in series.items():
    if name in names:
        for labels, value in samples:
            for instance in ("one", "two"):
                text = ",".join(f"{key}={json.dumps(label)}" for key, label in {**labels, "instance": instance}.items())
                step = "+1" if re.search("_(total|count|bucket|sum)$", name) or name == "badged_start_time_seconds" else "+0"
                lines += ["      - series: " + json.dumps(name + "{" + text + "}"), f"        values: {value}{step}x130"]
lines.append("    promql_expr_test:")
for query in queries.values():
    query = query.replace("$instance", ".*").replace("$__rate_interval", "5m")
    lines += ["      - expr: " + json.dumps(f"count({query}) > bool 0"), "        eval_time: 2h",
              "        exp_samples: [{labels: '{}', value: 1}]"]
filled = os.path.join(work, "dashboard.test.yml")
with open(filled, "w", encoding="utf-8") as file:
    file.write("\n".join(lines) + "\n")
result = subprocess.run(["promtool", "test", "rules", filled], capture_output=True, text=True)
check("promtool finds a result for each query of the dashboard", result.returncode == 0, result.stdout + result.stderr)
check("badged ends", daemon.end()[0] == 0)
finish()

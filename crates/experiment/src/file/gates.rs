//! `gates`: bounds that fail a run, as a list or as a table by name.

use readings::{Gate, GateMetric};

use crate::gate::{check_gate, parse_gate};
use crate::spec::Experiment;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Node, Tree};
use config::units::shown;

const FORM: &str = "a list such as [\"throughput > -3%\"], or a table such as [gates] with speed = \"throughput > -3%\"";

pub(super) fn gates(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) -> Vec<Gate> {
    let Some((entry, _)) = top.entry("gates") else {
        return Vec::new();
    };
    let written: Vec<(Option<&str>, &Node)> = match &entry.node.tree {
        Tree::Array(items) => items.iter().map(|item| (None, item)).collect(),
        Tree::Table(table) => {
            let entries = table.entries.iter();
            entries
                .map(|one| (Some(one.name.as_str()), &one.node))
                .collect()
        }
        _ => {
            reader.expected(&entry.node, "gates", FORM);
            return Vec::new();
        }
    };
    let mut gates: Vec<Gate> = Vec::new();
    for (name, node) in written {
        let path = name.map_or("gates[]".to_owned(), |name| {
            format!("gates.{}", shown(name))
        });
        let Some(text) = reader.text(node, &path) else {
            continue;
        };
        let gate = match parse_gate(&text) {
            Ok(gate) => gate,
            Err(e) => {
                let message = format!("`{path}` is not a gate: `{}`", shown(&text));
                reader.report(Problem::at(node.place, message, e.to_string()));
                continue;
            }
        };
        if let Err(problem) = check(&gate, experiment) {
            reader.report(Problem::at(node.place, problem, "in this gate"));
            continue;
        }
        let gate = Gate {
            name: name.map_or(gate.name, str::to_owned),
            ..gate
        };
        if gates.iter().any(|other| other.name == gate.name) {
            let message = format!("the gate `{}` is there twice", shown(&gate.name));
            reader.report(Problem::at(node.place, message, "the second"));
            continue;
        }
        gates.push(gate);
    }
    gates
}

fn check(gate: &Gate, experiment: &Experiment) -> Result<(), String> {
    let subjects = experiment.subjects.iter().map(|one| one.name.as_str());
    let subjects: Vec<&str> = subjects.collect();
    check_gate(gate, &subjects, &experiment.design.baseline)?;
    check_is_measured(gate, experiment)
}

/// Checks that the run measures the gate's metric: otherwise it would end without a judgement.
fn check_is_measured(gate: &Gate, experiment: &Experiment) -> Result<(), String> {
    if gate.metric != GateMetric::Failed && !experiment.events.is_empty() {
        return Err(format!(
            "`{}` is not measured where there are events; only `failed` can be bounded then",
            gate.metric.name()
        ));
    }
    if gate.metric == GateMetric::Reach {
        let loads = experiment.all_loads();
        return match loads.iter().any(|(_, load)| load.traffic.fan_out.is_some()) {
            true => Ok(()),
            false => Err(
                "`reach` is measured of topics: set fan_out = true in [load], or remove the gate"
                    .to_owned(),
            ),
        };
    }
    if matches!(gate.metric, GateMetric::FirstMessage | GateMetric::Lag) {
        let loads = experiment.all_loads();
        let mut loads = loads.iter().map(|(_, load)| load.traffic.kind());
        if loads.all(|kind| kind.is_answers()) {
            return Err(format!(
                "`{}` is measured of streams: set events = true in [load], or remove the gate",
                gate.metric.name()
            ));
        }
        return Ok(());
    }
    let in_tables = [
        GateMetric::Reload,
        GateMetric::MemoryAfter,
        GateMetric::Accepted,
    ];
    if in_tables.contains(&gate.metric) {
        return Err(format!(
            "`{}` is in tables and growths only: set `design.primary` to show it",
            gate.metric.name()
        ));
    }
    let is_of_closed = matches!(
        gate.metric,
        GateMetric::Throughput | GateMetric::Cpu | GateMetric::ProxyCpu
    );
    if is_of_closed && experiment.design.window.is_zero() {
        return Err(format!(
            "`{}` is measured in the closed loop, which is left out: `design.window` is \"0s\". \
             Give it a time, or remove the gate",
            gate.metric.name()
        ));
    }
    let is_measured = match gate.metric {
        GateMetric::P50 | GateMetric::P99 => may_have_other_drivers(experiment),
        GateMetric::CpuAtRate => false,
        _ => true,
    };
    if is_measured || !experiment.design.latency_window.is_zero() {
        return Ok(());
    }
    Err(format!(
        "`{}` is measured in the open loop, which is left out: `design.latency_window` is \"0s\". \
         Give it a time (with `weigh compare`: leave --latency=false out), or remove the gate",
        gate.metric.name()
    ))
}

/// Whether another driver than the engine may make the load: some report latencies of closed loops.
fn may_have_other_drivers(experiment: &Experiment) -> bool {
    let subjects = experiment.subjects.iter();
    let mut drivers = subjects.map(|one| one.driver.as_ref().unwrap_or(&experiment.load.driver));
    drivers.any(|driver| !driver.is_engine())
        || experiment.factors.iter().any(|one| one.name == "driver")
}

impl Experiment {
    /// Adds gates that were given as options.
    ///
    /// # Errors
    /// What is wrong with a text, and where in it, or that a gate is there already.
    pub fn add_gates(&mut self, texts: &[String]) -> Result<(), String> {
        for text in texts {
            let wrong = |e: String| format!("--gate '{}': {e}", shown(text));
            let gate = parse_gate(text).map_err(|e| wrong(e.to_string()))?;
            check(&gate, self).map_err(wrong)?;
            if self.gates.iter().any(|other| other.name == gate.name) {
                return Err(wrong("this gate is there twice".to_owned()));
            }
            self.gates.push(gate);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::Recipes;
    use crate::spec::Experiment;

    const HEAD: &str =
        "title = \"t\"\n[subjects]\nbase = \"http://h:1/\"\nhead = \"http://h:2/\"\n";

    fn read(gates: &str) -> Result<Experiment, String> {
        let recipes = Recipes::embedded().unwrap();
        let text = match gates.starts_with('[') {
            true => format!("{HEAD}{gates}"),
            false => format!("{gates}\n{HEAD}"),
        };
        Experiment::parse("x.toml", &text, &[], false, &recipes)
            .map_err(|e| format!("{:?}", miette::Report::new(e)))
    }

    #[test]
    fn a_list_and_a_table_are_gates_and_are_written_back() {
        let list = read("gates = [\"throughput > -3%\", \"head: p99 < 20ms\"]").unwrap();
        assert_eq!(list.gates.len(), 2);
        assert_eq!(list.gates[1].subject.as_deref(), Some("head"));
        let table = read("[gates]\nspeed = \"throughput > -3%\"\n").unwrap();
        assert_eq!(table.gates[0].name, "speed");
        let recipes = Recipes::embedded().unwrap();
        for experiment in [list, table] {
            let text = experiment.to_toml();
            let again = Experiment::parse("x.toml", &text, &[], false, &recipes).unwrap();
            assert_eq!(again.gates, experiment.gates, "{text}");
        }
    }

    #[test]
    fn a_mistake_is_shown_in_its_gate() {
        for (gates, part) in [
            (
                "gates = [\"throughput < -3%\"]",
                "more is better: expected `>`, found `<` (at character 12)",
            ),
            ("gates = 3", "expected a list such as"),
            ("gates = [\"haed: p99 < 2ms\"]", "did you mean `head`?"),
            (
                "gates = [\"base: p99 < +2%\"]",
                "compares the baseline with itself",
            ),
            (
                "gates = [\"p99 < +2%\", \"p99<+2%\"]",
                "the gate `p99 < +2%` is there twice",
            ),
        ] {
            let told = read(gates).unwrap_err();
            let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(told.contains(part), "{gates}: {told}");
        }
        let told =
            read("gates = [\"throughput > -3%\", \"p99 < 2ms\"]\ndesign.latency_window = \"0s\"");
        let told = told.unwrap_err();
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "`p99` is measured in the open loop, which is left out",
            "in this gate",
        ] {
            assert!(told.contains(part), "{told}");
        }
        let mut experiment = read("gates = []").unwrap();
        let error = experiment.add_gates(&["p99 < 3".to_owned()]).unwrap_err();
        assert!(error.contains("--gate 'p99 < 3': expected"), "{error}");
        experiment.add_gates(&["p99 < 3ms".to_owned()]).unwrap();
        assert!(experiment.add_gates(&["p99 < 3ms".to_owned()]).is_err());
    }

    #[test]
    fn a_metric_of_the_open_loop_is_refused_where_that_is_left_out() {
        let add = |more: &str, gate: &str| {
            let mut experiment =
                read(&format!("[design]\nlatency_window = \"0s\"\n{more}")).unwrap();
            experiment.add_gates(&[gate.to_owned()])
        };
        for gate in ["p50 < +5%", "head: p99 < 3ms", "cpu_at_rate < +5%"] {
            let error = add("", gate).unwrap_err();
            assert!(error.contains("which is left out"), "{gate}: {error}");
            assert!(
                error.contains("leave --latency=false out"),
                "{gate}: {error}"
            );
        }
        for gate in [
            "throughput > -3%",
            "cpu < +5%",
            "proxy_cpu < +5%",
            "memory < +5%",
            "failed < 1%",
        ] {
            assert_eq!(add("", gate), Ok(()), "{gate}");
        }
        // wrk reports latencies of its closed loop.
        assert_eq!(add("[load]\ndriver = \"wrk\"\n", "p99 < 3ms"), Ok(()));
        assert!(add("[load]\ndriver = \"wrk\"\n", "cpu_at_rate < +5%").is_err());
    }

    #[test]
    fn only_failures_can_be_bounded_where_there_are_events() {
        let text = "title = \"t\"\n[servers.o]\nrecipe = \"origin\"\n[subjects]\no = \"http://o/\"\n\
                    [load]\nrate = \"100/s\"\n[[events]]\nat = \"1s\"\nserver = \"o\"\n\
                    what = \"stop\"\nuntil = \"2s\"\n";
        let recipes = Recipes::embedded().unwrap();
        let mut experiment = Experiment::parse("x.toml", text, &[], false, &recipes).unwrap();
        for gate in ["throughput > 1/s", "p99 < 3ms", "cpu < 5us", "memory < 5MB"] {
            let error = experiment.add_gates(&[gate.to_owned()]).unwrap_err();
            let part = "is not measured where there are events";
            assert!(error.contains(part), "{gate}: {error}");
        }
        experiment.add_gates(&["failed < 1%".to_owned()]).unwrap();
    }
}

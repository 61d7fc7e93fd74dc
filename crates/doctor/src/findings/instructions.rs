//! Whether the servers' instructions can be counted.

use agent::instructions::NotCounted;
use readings::InstructionScope;

use crate::machine::Machine;
use crate::{Finding, Level, Topic, set_sysctl};

const PARANOID: &str = "kernel.perf_event_paranoid";
/// Up to this value any user may count what the kernel does for a program, ...
const PARANOID_KERNEL: u64 = 1;
/// ... and up to this one a program's own code. Debian has higher values, which forbid both.
const PARANOID_USER: u64 = 2;

/// Nothing where it was not looked for.
pub(crate) fn finding(machine: &Machine) -> Option<Finding> {
    let paranoid = machine.sysctls.number(PARANOID);
    let set = paranoid.filter(|value| *value > PARANOID_USER);
    let (level, found) = match (machine.instructions?, set) {
        (Ok(InstructionScope::UserAndKernel), _) => (
            Level::Fine,
            "counted, those of the kernel included".to_owned(),
        ),
        (Ok(InstructionScope::User), _) => (
            Level::Fine,
            "counted in the servers' own code, without the kernel's".to_owned(),
        ),
        (Err(NotCounted::NoCounters), _) => (
            Level::Fine,
            "not counted here: no hardware counters (usual in virtual machines)".to_owned(),
        ),
        (Err(NotCounted::SeveralKinds), _) => (
            Level::Fine,
            "not counted here: the cores are of several kinds".to_owned(),
        ),
        (Err(NotCounted::Forbidden), None) => (
            Level::Fine,
            "not counted here: not permitted (usual in containers)".to_owned(),
        ),
        (Err(NotCounted::Forbidden), Some(value)) => (
            Level::Note,
            format!("not counted here: {PARANOID} is {value}"),
        ),
    };
    let finding = Finding::new(
        Topic::Instructions,
        level,
        found,
        format!("{PARANOID} at most {PARANOID_KERNEL}, on a machine with hardware counters"),
        "Instructions per request hardly depend on other programs, so they show a change in a \
         server's work with fewer blocks than CPU time does. Cache misses do not show in them.",
    );
    Some(match level {
        Level::Fine => finding,
        _ => finding.mend(set_sysctl(
            machine.root,
            PARANOID,
            &PARANOID_KERNEL.to_string(),
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{good, put};

    #[test]
    fn what_is_not_counted_has_its_reason_and_a_command_where_one_helps() {
        let of = |counted, paranoid: &str| {
            let mut machine = good();
            machine.root = false;
            machine.instructions = Some(counted);
            put(&mut machine, PARANOID, paranoid);
            finding(&machine).unwrap()
        };
        let counted = of(Ok(InstructionScope::UserAndKernel), "1");
        assert_eq!(counted.found, "counted, those of the kernel included");
        let own = of(Ok(InstructionScope::User), "2");
        assert!(own.found.contains("own code"), "{own:?}");
        let none = of(Err(NotCounted::NoCounters), "2");
        assert_eq!(
            none.found,
            "not counted here: no hardware counters (usual in virtual machines)"
        );
        let container = of(Err(NotCounted::Forbidden), "2");
        for fine in [counted, own, none, container] {
            assert_eq!((fine.level, fine.mend), (Level::Fine, None));
        }
        let debian = of(Err(NotCounted::Forbidden), "3");
        assert_eq!(debian.level, Level::Note);
        assert_eq!(
            debian.mend.unwrap(),
            "sudo sysctl -w kernel.perf_event_paranoid=1"
        );
        assert_eq!(finding(&good()), None);
    }
}

//! Subjects that differ in their congestion control.

use readings::Condition;

use crate::{CongestionSummary, Warning};

/// Subjects that are compared under one condition and differ in their congestion control. What is
/// the same under several conditions is said once.
pub(crate) fn warnings(summaries: &[CongestionSummary]) -> Vec<Warning> {
    let mut found: Vec<([CongestionSummary; 2], Vec<Condition>)> = Vec::new();
    let mut conditions = 0;
    for group in summaries.chunk_by(|a, b| a.at.condition == b.at.condition) {
        conditions += 1;
        let first = &group[0];
        let Some(other) = group.iter().find(|other| other.differs_from(first)) else {
            continue;
        };
        let known = found
            .iter_mut()
            .find(|(sides, _)| is_like(&sides[0], first) && is_like(&sides[1], other));
        let condition = first.at.condition.clone();
        match known {
            Some((_, at)) => at.push(condition),
            None => found.push(([first.clone(), other.clone()], vec![condition])),
        }
    }
    let each = found.into_iter().map(|(sides, at)| {
        let is_everywhere = at.len() == conditions;
        Warning::CongestionDiffers {
            sides,
            conditions: if is_everywhere { Vec::new() } else { at },
        }
    });
    each.collect()
}

/// Whether two are the same but for their conditions.
fn is_like(one: &CongestionSummary, other: &CongestionSummary) -> bool {
    let of = |one: &CongestionSummary| {
        let ends = (one.client.clone(), one.server.clone());
        (one.at.subject.clone(), one.transport, ends)
    };
    of(one) == of(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Place, Transport};

    fn of(subject: &str, level: &str, transport: Transport, name: &str) -> CongestionSummary {
        let condition = [("path".to_string(), level.to_string())];
        CongestionSummary {
            at: Place {
                subject: subject.into(),
                condition: condition.into_iter().collect(),
            },
            transport,
            client: Some(name.into()),
            server: Some(name.into()),
        }
    }

    #[test]
    fn a_difference_under_some_conditions_is_said_once_with_them() {
        use Transport::{Quic, Tcp};
        let all = [
            of("a", "1", Tcp, "bbr"),
            of("b", "1", Quic, "bbr"),
            of("a", "2", Tcp, "bbr"),
            of("b", "2", Quic, "cubic"),
            of("a", "3", Tcp, "bbr"),
            of("b", "3", Quic, "cubic"),
        ];
        let found = warnings(&all);
        let [Warning::CongestionDiffers { sides, conditions }] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(sides[1].client.as_deref(), Some("cubic"));
        assert_eq!(conditions.len(), 2);
        // What is true under all conditions needs no list of them.
        let found = warnings(&all[2..]);
        let [Warning::CongestionDiffers { conditions, .. }] = &found[..] else {
            panic!("{found:?}");
        };
        assert!(conditions.is_empty());
        assert_eq!(warnings(&all[..2]), []);
    }

    #[test]
    fn the_same_algorithm_has_two_names_and_an_unknown_one_is_no_difference() {
        use Transport::{Quic, Tcp};
        let reno = [of("a", "1", Tcp, "reno"), of("b", "1", Quic, "newreno")];
        assert_eq!(warnings(&reno), []);
        let mut unknown = of("b", "1", Tcp, "cubic");
        unknown.client = None;
        unknown.server = None;
        assert_eq!(warnings(&[of("a", "1", Tcp, "bbr"), unknown]), []);
        let mut only_server = of("b", "1", Tcp, "cubic");
        only_server.client = None;
        assert_eq!(warnings(&[of("a", "1", Tcp, "bbr"), only_server]).len(), 1);
    }
}

//! A client that sends late, and what other programs take from it, as parts of a sentence.

use crate::{CpusOfOthers, LagRemedy, LateClient};
use readings::text::{counted, number, times_alike};

/// What helps against other programs.
pub const END_OTHERS: &str = "end these programs or measure on a quieter machine";

/// `other programs and the hypervisor took 1.4 of the machine's 2 CPUs`.
pub fn others(of: &CpusOfOthers) -> String {
    format!(
        "other programs and the hypervisor took {} of the machine's {}",
        number(of.cpus, 1, false),
        counted(of.of_cpus as usize, "CPU")
    )
}

/// The same with what helps.
pub fn others_end(of: &CpusOfOthers) -> String {
    format!("{}: {END_OTHERS}", others(of))
}

/// Why a quantile of the latency is the client's own doing.
pub fn late_client(late: &LateClient) -> String {
    let p = late.quantile * 100.0;
    let (lag, latency) = times_alike(late.lag_us, late.latency_us);
    format!(
        "the client sent late: p{p} of its lag is {lag}, more than a tenth of the p{p} of latency, \
         {latency}; {}",
        remedy(&late.remedy)
    )
}

/// What helps a client that sends late.
pub fn remedy(remedy: &LagRemedy) -> String {
    match remedy {
        LagRemedy::OwnCpu => "give the load a CPU of its own".to_owned(),
        LagRemedy::EndOthers(others) => others_end(others),
        LagRemedy::QuieterMachine(cpus) => format!(
            "the load was already bound to {}: lower the rate or measure on a quieter machine",
            counted(cpus.len(), "CPU")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_for_a_late_client_fits_its_placement() {
        let others = CpusOfOthers {
            cpus: 1.4,
            of_cpus: 2,
        };
        let cases = [
            (LagRemedy::OwnCpu, "give the load a CPU of its own"),
            (
                LagRemedy::EndOthers(others),
                "other programs and the hypervisor took 1.4 of the machine's 2 CPUs: end these \
                 programs or measure on a quieter machine",
            ),
            (
                LagRemedy::QuieterMachine(vec![0]),
                "the load was already bound to 1 CPU: lower the rate or measure on a quieter machine",
            ),
        ];
        for (remedy, words) in cases {
            let late = LateClient {
                quantile: 0.5,
                lag_us: 832.0,
                latency_us: 2_220.0,
                remedy,
            };
            let start = "the client sent late: p50 of its lag is 0.83 ms, more than a tenth of the \
                         p50 of latency, 2.22 ms; ";
            assert_eq!(late_client(&late), format!("{start}{words}"));
        }
    }
}

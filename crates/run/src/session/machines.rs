//! The machines of a run: its hosts, their CPUs, and what is known of them.

use std::collections::BTreeMap;

use crate::context::Learned;
use crate::testbed::authority::RunAuthority;
use crate::testbed::chosen_addresses::ChosenAddresses;
use crate::testbed::cpu_placement::LoadHostPlacements;
use crate::testbed::{Testbed, hosts_spec};
use crate::{OpenHosts, RunError, RunOptions};

pub(super) struct Machines<'a> {
    open: OpenHosts<'a>,
    options: &'a RunOptions<'a>,
    seed: u64,
    pub(super) placements: LoadHostPlacements,
    /// There is none only before they are opened, and between a loss and reopening.
    pub(super) testbed: Option<Testbed>,
    pub(super) driver_versions: BTreeMap<String, Option<String>>,
    pub(super) authority: RunAuthority,
    pub(super) chosen_addresses: ChosenAddresses,
    pub(super) learned: Learned,
}

impl<'a> Machines<'a> {
    pub(super) fn new(
        open: OpenHosts<'a>,
        options: &'a RunOptions<'a>,
        seed: u64,
        placements: LoadHostPlacements,
        learned: Learned,
    ) -> Self {
        Self {
            open,
            options,
            seed,
            placements,
            testbed: None,
            driver_versions: BTreeMap::new(),
            authority: RunAuthority::default(),
            chosen_addresses: ChosenAddresses::default(),
            learned,
        }
    }

    /// Opens the hosts, or reopens them after a loss.
    pub(super) fn open(&mut self) -> Result<&mut Testbed, RunError> {
        let placement = self.placements.first();
        let spec = hosts_spec(self.options.experiment, placement, self.seed);
        let before = self.testbed.take().map(Testbed::into_hosts);
        Ok(self.testbed.insert(Testbed::of((self.open)(before, spec)?)))
    }

    /// Opens the hosts for the first time, and checks the requirements of the experiment there.
    pub(super) fn open_first(&mut self) -> Result<(), RunError> {
        let options = self.options;
        let sentences = self.open()?.missing(options.experiment, options.recipes)?;
        match sentences.is_empty() {
            true => Ok(()),
            false => Err(RunError::Missing { sentences }),
        }
    }

    /// Determines the versions of the drivers.
    pub(super) fn find_driver_versions(&mut self, from: Option<&str>) {
        let options = self.options;
        if let Some(testbed) = &mut self.testbed {
            for driver in options.recipes.drivers_of(options.experiment) {
                let version = testbed.driver_version(from, driver, options.weigh);
                self.driver_versions.insert(driver.name.clone(), version);
            }
        }
    }
}

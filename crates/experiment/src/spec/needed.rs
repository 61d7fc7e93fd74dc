//! Which recipes an experiment needs, and in which versions.

use super::experiment::Experiment;
use crate::recipe::Recipe;
use crate::recipes::Recipes;

/// A recipe of servers that some subject reaches, in one version, on one host.
#[derive(Clone, Debug)]
pub struct NeededRecipe<'r> {
    pub recipe: &'r Recipe,
    /// The version; `None` for a recipe without a choice.
    pub version: Option<String>,
    pub host: Option<String>,
    /// The servers' names.
    pub servers: Vec<String>,
}

impl Experiment {
    /// The recipes that servers need under any condition, in the order in which servers start.
    pub fn needed<'r>(&self, recipes: &'r Recipes) -> Vec<NeededRecipe<'r>> {
        let conditions = self.conditions();
        let mut needed: Vec<NeededRecipe<'r>> = Vec::new();
        for server in self.start_order() {
            let Some(recipe) = recipes.get(&server.recipe) else {
                continue;
            };
            let mut versions: Vec<Option<String>> = Vec::new();
            // Only a choice of versions can differ between conditions.
            let count = match recipe.packages.has_versions() {
                true => conditions.len(),
                false => conditions.len().min(1),
            };
            for condition in &conditions[..count] {
                let resolved = self.under(condition);
                let under = resolved.servers.iter().find(|one| one.name == server.name);
                let version = under.and_then(|one| recipe.wanted_version(&one.params));
                let version = version.map(str::to_owned);
                if under.is_some() && !versions.contains(&version) {
                    versions.push(version);
                }
            }
            for version in versions {
                let same = needed.iter_mut().find(|one| {
                    one.recipe.name == recipe.name
                        && one.version == version
                        && one.host == server.host
                });
                match same {
                    Some(one) => one.servers.push(server.name.clone()),
                    None => needed.push(NeededRecipe {
                        recipe,
                        version,
                        host: server.host.clone(),
                        servers: vec![server.name.clone()],
                    }),
                }
            }
        }
        needed
    }
}

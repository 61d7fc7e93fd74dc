//! What an experiment needs that is not installed here.

use experiment::{Experiment, Recipes};

/// What is missing on this machine for an experiment, a sentence each. Other
/// machines are checked once their agents run.
pub fn missing(experiment: &Experiment, recipes: &Recipes) -> Vec<String> {
    let mut sentences = Vec::new();
    let servers = experiment.start_order();
    let here = |host: &Option<String>| !experiment.is_elsewhere(host.as_deref());
    for server in servers.into_iter().filter(|server| here(&server.host)) {
        let sentence = recipes
            .get(&server.recipe)
            .and_then(|recipe| recipe.available().sentence());
        if let Some(sentence) = sentence
            && !sentences.contains(&sentence)
        {
            sentences.push(sentence);
        }
    }
    let conditions = experiment.conditions();
    let mut loads = conditions.iter().map(|one| experiment.under(one).load.host);
    if !loads.any(|host| here(&host)) {
        return sentences;
    }
    for driver in recipes.drivers_of(experiment) {
        let sentence = driver.available().sentence();
        sentences.extend(sentence.filter(|sentence| !sentences.contains(sentence)));
    }
    sentences
}

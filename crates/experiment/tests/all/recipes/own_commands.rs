//! Commands of the user's own, as a recipe.

use std::path::{Path, PathBuf};

use super::rules::{context, text};
use crate::support::recipes;
use experiment::manifest::Value;

fn list(items: &[&str]) -> Value {
    Value::List(items.iter().map(|item| (*item).to_owned()).collect())
}

#[test]
fn a_command_of_the_users_own_is_filled_in() {
    let recipes = recipes();
    let recipe = recipes.get("command").unwrap();
    let params = [
        (
            "command",
            list(&["./a", "", "{address}:{port}", "{upstream}", "{\"x\": 1}"]),
        ),
        ("env", list(&["DATA={dir}/data", "EQUALS=a=b"])),
        ("ready", text("/up")),
        ("cwd", text("/src")),
    ];
    let mut context = context(recipe, Path::new("/d"), &params);
    let out = recipe.render(&context).unwrap();
    assert_eq!(
        out.command,
        ["./a", "", "127.0.0.1:8080", "127.0.0.1:8081", "{\"x\": 1}"]
    );
    let env: Vec<(&str, &str)> = out
        .env
        .iter()
        .map(|(n, v)| (n.as_str(), v.as_str()))
        .collect();
    let expected = [("PORT", "8080"), ("DATA", "/d/data"), ("EQUALS", "a=b")];
    assert_eq!(env, expected);
    assert_eq!(out.ready.path, "/up");
    assert_eq!(out.cwd.as_deref(), Some(Path::new("/src")));
    assert!(out.inherit_env);

    context.checkout = Some(PathBuf::from("/cache/1"));
    let out = recipe.render(&context).unwrap();
    assert_eq!(out.cwd.as_deref(), Some(Path::new("/cache/1")));

    context.upstreams.clear();
    let refused = recipe.render(&context).unwrap_err().to_string();
    assert!(refused.contains("no upstream"), "{refused}");
    context.params.insert("env".to_owned(), list(&["no value"]));
    let refused = recipe.render(&context).unwrap_err().to_string();
    assert!(refused.contains("NAME=VALUE"), "{refused}");
}

//! Splits a command that is written as one text.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandWords {
    /// The assignments in front of the program, each `NAME=VALUE`.
    pub variables: Vec<String>,
    /// The program and its arguments; at least one.
    pub words: Vec<String>,
}

/// Splits a command into words by the quoting rules of a POSIX shell. Nothing is expanded, and
/// there are no operators: no pipes, redirections or `&&`. Assignments in front of the program are
/// variables, as in `PORT={port} node server.js`.
///
/// # Errors
/// What is wrong with the quoting, or that there is no program.
pub fn command_words(text: &str) -> Result<CommandWords, String> {
    let words = shlex::split(text)
        .ok_or_else(|| "a quote is not closed, or a backslash ends the command".to_owned())?;
    if let Some(operator) = words
        .iter()
        .find(|word| ["|", "||", "&&", "&", ";", ">", ">>", "<"].contains(&word.as_str()))
    {
        return Err(format!(
            "`{operator}` needs a shell, and the command is run without one; write sh -c '…'"
        ));
    }
    let first = words.iter().position(|word| !is_assignment(word));
    let Some(first) = first else {
        return Err("it names no program".to_owned());
    };
    let mut variables = words;
    let words = variables.split_off(first);
    Ok(CommandWords { variables, words })
}

/// Whether the text of a command names the port, with `{port}` or the variable PORT.
pub fn names_a_port(text: &str) -> bool {
    text.contains("{port}") || text.contains("PORT")
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else {
        return false;
    };
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(first) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_as_a_shell_does_it() {
        let words = |text: &str| {
            let found = command_words(text).unwrap();
            (found.variables.join("|"), found.words.join("|"))
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(words("./a --port {port}"), pair("", "./a|--port|{port}"));
        assert_eq!(
            words("A=1 PORT={port} './my server' \"b c\" d\\ e x=y"),
            pair("A=1|PORT={port}", "./my server|b c|d e|x=y")
        );
        assert_eq!(words("a # b"), pair("", "a"));
        for (text, why) in [
            ("a 'b", "quote"),
            ("", "no program"),
            ("A=1", "no program"),
            ("a && b", "sh -c"),
        ] {
            assert!(command_words(text).unwrap_err().contains(why), "{text}");
        }
    }
}

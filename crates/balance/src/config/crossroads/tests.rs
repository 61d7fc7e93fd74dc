//! The grammar alone: what is written from a tree is read as that tree.

use ::config::reader::Reader;
use proptest::prelude::*;

use super::ast::Block;
use super::keywords::Scope;
use super::{NoIncludes, parse, preprocess};

/// A block without places, to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bare {
    name: String,
    statements: Vec<(String, String)>,
    backends: Vec<Bare>,
}

impl Bare {
    fn of(block: &Block) -> Bare {
        Bare {
            name: block.name.clone(),
            statements: block
                .statements
                .iter()
                .map(|one| (one.keyword.clone(), one.value.clone()))
                .collect(),
            backends: block.backends.iter().map(Bare::of).collect(),
        }
    }
}

fn read(text: &str) -> (Vec<Bare>, Option<String>) {
    let mut reader = Reader::new("x.conf", text);
    let tokens = preprocess::tokens(&mut reader, &mut NoIncludes);
    let file = parse::file(&mut reader, &tokens);
    let mistakes = reader.finish().map(|all| {
        let all: Vec<String> = all.all().iter().map(ToString::to_string).collect();
        all.join("\n")
    });
    (file.services.iter().map(Bare::of).collect(), mistakes)
}

/// What may stand between two tokens.
const GAPS: [&str; 6] = [
    " ",
    "\n",
    "\t// a comment; with { signs }\n",
    " /* one \" over\n two lines */ ",
    "\r\n",
    "  ",
];

fn write(noun: &str, block: &Bare, gaps: &mut impl Iterator<Item = usize>, out: &mut String) {
    let mut put = |text: &str| {
        out.push_str(text);
        out.push_str(GAPS[gaps.next().unwrap_or(0) % GAPS.len()]);
    };
    put(noun);
    put(&block.name);
    put("{");
    for (keyword, value) in &block.statements {
        // The keyword's own gap is a space: a line that begins with a keyword ends a statement.
        let plain = !value.contains([';', '{', '}', '"', '/', '#']) && !value.contains("  ");
        if !plain || value.is_empty() {
            put(&format!("{keyword} \"{}\"", value.replace('"', "\\\"")));
        } else {
            put(&format!("{keyword} {value}"));
        }
        put(";");
    }
    for one in &block.backends {
        write("backend", one, gaps, out);
    }
    out.push_str("}\n");
}

fn statements(scope: Scope) -> impl Strategy<Value = Vec<(String, String)>> {
    let keyword =
        proptest::sample::select(scope.keywords().collect::<Vec<_>>()).prop_map(str::to_owned);
    let value = prop_oneof![
        "[0-9]{1,6}",
        "[a-zA-Z0-9.:%=_-]{1,10}( [a-zA-Z0-9.:%=_-]{1,8}){0,3}",
        "[a-z0-9 ;{}\"/*#=äß-]{0,16}".prop_map(|text| text.trim().to_owned()),
    ];
    proptest::collection::vec((keyword, value), 0..5)
}

fn blocks() -> impl Strategy<Value = Vec<Bare>> {
    let name = "[A-Za-z_][A-Za-z0-9_]{0,8}";
    let backend = (name, statements(Scope::Backend)).prop_map(|(name, statements)| Bare {
        name,
        statements,
        backends: Vec::new(),
    });
    let service = (
        name,
        statements(Scope::Service),
        proptest::collection::vec(backend, 0..3),
    )
        .prop_map(|(name, statements, backends)| Bare {
            name,
            statements,
            backends,
        });
    proptest::collection::vec(service, 0..3)
}

proptest! {
    #[test]
    fn a_tree_is_written_and_read_the_same(
        tree in blocks(), gaps in proptest::collection::vec(0..GAPS.len(), 0..80),
    ) {
        let mut text = String::new();
        let mut gaps = gaps.into_iter();
        for block in &tree {
            write("service", block, &mut gaps, &mut text);
        }
        let (found, mistakes) = read(&text);
        prop_assert_eq!(mistakes, None, "{}", text);
        prop_assert_eq!(found, tree, "{}", text);
    }

    #[test]
    fn a_value_may_come_from_a_symbol(symbol in "[A-Z_]{3,9}", value in "[a-z0-9.]{1,9}( [0-9]{1,4}){0,2}") {
        let (with, _) = read(&format!("#define {symbol} {value} // said once\nservice s {{ \
            dispatchmode {symbol}; allowfrom x{symbol} \"{symbol}\" {symbol}; }}"));
        let (without, _) = read(&format!("service s {{ dispatchmode {value}; \
            allowfrom x{symbol} \"{symbol}\" {value}; }}"));
        prop_assert_eq!(with, without);
    }
}

fn mistakes(text: &str) -> String {
    read(text).1.unwrap_or_default()
}

#[test]
fn a_string_runs_to_the_semicolon() {
    let (found, mistakes) = read(
        "service s { port 1; backend b {\n\
         onfail awk '{ print }' /tmp/*.log http://x//y \"a; b\" c;\n\
         server \"10.0.0.1\"; onend \"say \\\"x\\\"\"; } }",
    );
    assert_eq!(mistakes, None);
    assert_eq!(
        found[0].backends[0].statements,
        [
            (
                "onfail".to_owned(),
                "awk '{ print }' /tmp/*.log http://x//y \"a; b\" c".to_owned()
            ),
            ("server".to_owned(), "10.0.0.1".to_owned()),
            ("onend".to_owned(), "say \"x\"".to_owned()),
        ]
    );
}

#[test]
fn a_directive_stands_in_the_first_column() {
    assert!(mistakes("service s { }\n  #define A b\n").contains("found `#define`"));
    assert!(mistakes("#defin A b\n").contains("no directive is called `#defin`"));
    assert!(mistakes("#define 1A b\n").contains("a symbol and what it stands for"));
    assert!(mistakes("#include more.conf\n").contains("in quotes"));
    assert!(mistakes("#include \"more.conf\"\n").contains("more.conf cannot be included"));
}

#[test]
fn symbols_that_stand_for_themselves_are_refused() {
    for text in [
        "#define A A\nservice s { port A; }",
        "#define A B\n#define B x A\nservice s { port A; }",
    ] {
        assert!(mistakes(text).contains("defined by itself"), "{text}");
    }
    assert!(mistakes("#define A 1\n#define A 2\n").contains("defined twice"));
}

#[test]
fn symbols_that_multiply_are_stopped() {
    let mut text = String::from("#define A0 x x x x x x x x x x\n");
    for level in 1..12 {
        let before = format!("A{} ", level - 1).repeat(10);
        text.push_str(&format!("#define A{level} {before}\n"));
    }
    text.push_str("service s { port A11; }");
    assert!(mistakes(&text).contains("come from #define"));
    // The same with nothing at the end, which leaves no word behind.
    let text = text.replace("A0 x x x x x x x x x x", "A0");
    assert!(mistakes(&text).contains("come from #define"));
}

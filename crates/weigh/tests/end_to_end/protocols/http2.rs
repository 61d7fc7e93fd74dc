//! HTTP/2, as a user has it.

use experiment::Recipes;

use super::agreed;
use crate::common::started::installed;
use crate::common::{Origin, Place, has, load, no_errors, number, trials};

#[test]
fn a_load_over_http2_has_streams() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let (done, document) = load(&place, &origin.url, "--http 2 --streams 8 -c 2 -n 400");
    assert_eq!(done.status, 0, "{}", document["problems"]);
    no_errors(&document);
    assert_eq!(document["requests"], 400);
    assert_eq!(document["connects"], 2);
    assert_eq!(document["streams"], 8);
    let (_, document) = load(
        &place,
        &origin.url,
        "--http 2 --streams 8 -c 2 -d 1s --rate 300",
    );
    no_errors(&document);
    assert!(
        (250.0..350.0).contains(&number(&document["requests"])),
        "{document}"
    );
}

#[test]
fn a_server_without_http2_is_named() {
    let place = Place::new();
    // Without TLS the balancer offers only HTTP/1.1, unless it is told otherwise.
    let origin = Origin::start(&place);
    place.write(
        "b.toml",
        &format!(
            "[services.web]\nlisten = \"127.0.0.1:0\"\nkind = \"http\"\n\
             [services.web.backends]\none = \"{}\"\n",
            origin
                .url
                .trim_start_matches("http://")
                .trim_end_matches('/')
        ),
    );
    let mut balancer = place.start("balance b.toml");
    balancer.until_said("127.0.0.1:");
    let said = balancer.errors();
    let from = said.find("127.0.0.1:").unwrap();
    let end = |c: char| !(c.is_ascii_digit() || c == '.' || c == ':');
    let address = said[from..]
        .split(end)
        .next()
        .unwrap()
        .trim_end_matches(':');
    let url = format!("http://{address}/");
    let done = place.run(&format!("load {url} --http 2 -n 5")).expect(1);
    has(&done.err, "HTTP/2");
}

#[test]
fn subjects_of_one_experiment_may_differ_in_their_version_of_http() {
    for server in [
        "[servers.s]\nrecipe = \"origin\"\nwith = { tls = true }\n",
        "[servers.o]\nrecipe = \"origin\"\n\
         [servers.s]\nrecipe = \"balance\"\nupstreams = [\"o\"]\n\
         with = { mode = \"http\", tls = true, http2 = true }\n",
    ] {
        let place = Place::new();
        place.experiment(&format!(
            "{server}[subjects]\nhttp1 = {{ url = \"https://s/\", connections = 6 }}\n\
             http2 = {{ url = \"https://s/\", http = \"2\", connections = 1, streams = 12 }}\n"
        ));
        place.run("run x.toml --format json --out r").none_failed();
        let expected = [("http1", 6, "http/1.1"), ("http2", 1, "h2")];
        let expected = expected.map(|(name, count, alpn)| (name.into(), count, alpn.into(), false));
        assert_eq!(agreed(&place), expected.into());
    }
}

#[test]
fn the_balancer_speaks_http2_to_a_back_end_that_speaks_nothing_else() {
    let recipes = Recipes::embedded().unwrap();
    if installed(recipes.get("nghttpd").unwrap()).is_none() {
        return;
    }
    let place = Place::new();
    place.experiment(
        "[servers.plain]\nrecipe = \"nghttpd\"\n\
         [servers.secure]\nrecipe = \"nghttpd\"\nwith = { tls = true }\n\
         [servers.b]\nrecipe = \"balance\"\nupstreams = [\"plain\"]\n\
         with = { mode = \"http\", upstream_http2 = true }\n\
         [servers.c]\nrecipe = \"balance\"\nupstreams = [\"secure\"]\n\
         with = { mode = \"http\", upstream_http2 = true }\n\
         [subjects]\nplain = \"http://b/\"\nsecure = \"http://c/\"\n\
         [load]\nconnections = 4\n",
    );
    place.run("run x.toml --format json --out r").none_failed();
    for trial in trials(&place.path("r")) {
        let reading = &trial["outcome"]["done"]["throughput"];
        assert!(reading["requests"].as_u64().unwrap() > 10, "{trial}");
    }
}

#[test]
fn servers_that_speak_only_http2_are_waited_for_and_measured() {
    let place = Place::new();
    let recipes = Recipes::embedded().unwrap();
    let mut servers = String::new();
    let mut subjects = "[subjects]\n".to_owned();
    let mut count = 0;
    for (name, recipe, with, url) in [
        ("plain", "nghttpd", "files = []", "http://plain/"),
        ("secure", "nghttpd", "tls = true", "https://secure/"),
        ("nginx", "nginx", "http2 = true", "http://nginx/"),
        ("node", "node", "http2 = true", "http://node/"),
        (
            "nodes",
            "node",
            "http2 = true, tls = true",
            "https://nodes/",
        ),
    ] {
        if installed(recipes.get(recipe).unwrap()).is_none() {
            continue;
        }
        count += 1;
        servers.push_str(&format!(
            "[servers.{name}]\nrecipe = \"{recipe}\"\nwith = {{ {with} }}\n"
        ));
        subjects.push_str(&format!("{name} = \"{url}\"\n"));
    }
    if count == 0 {
        return;
    }
    place.experiment(&format!(
        "{servers}{subjects}[load]\nconnections = 2\nhttp = \"2\"\n\
             streams = 4\n[expect]\nsame = false\n",
    ));
    place
        .run("run x.toml --format json --out r")
        .made(count + 1);
    for trial in trials(&place.path("r")) {
        let reading = &trial["outcome"]["done"]["throughput"];
        assert!(reading["requests"].as_u64().unwrap() > 10, "{trial}");
        assert_eq!(reading["streams"], 4, "{trial}");
    }
    // A server that is asked in a version that it does not speak is recognised by its answer.
    if servers.contains("[servers.plain]") {
        place.write(
            "y.toml",
            "title = \"t\"\n[servers.plain]\nrecipe = \"nghttpd\"\nwith = { files = [] }\n\
             [subjects]\nplain = \"http://plain/\"\n[design]\nblocks = 1\nwarmup = \"50ms\"\n\
             window = \"200ms\"\nlatency_window = \"0s\"\nbottleneck = false\nretries = 0\n",
        );
        let done = place.run("run y.toml --format json --out wrong");
        has(&done.err, "speaks only HTTP/2");
    }
}

#[test]
fn a_command_that_speaks_only_http2_is_waited_for() {
    let place = Place::new();
    let Some(_) = installed(Recipes::embedded().unwrap().get("nghttpd").unwrap()) else {
        return;
    };
    place.write("htdocs/health", "fine");
    let htdocs = place.path("htdocs");
    let [one, two] = ["one", "two"].map(|name| {
        let htdocs = htdocs.display();
        format!("{name}=nghttpd --no-tls --address={{address}} --htdocs={htdocs} {{port}}")
    });
    let mut call = vec!["compare", &one, &two];
    call.extend(["--ready", "/health", "--path", "/health"]);
    call.extend(["--http", "2", "--streams", "4", "-c", "2", "--blocks", "1"]);
    call.extend(["--window", "200ms", "--format", "json", "--out", "r"]);
    call.extend(["--bottleneck=false", "--latency=false"]);
    let done = place.run(&call);
    done.none_failed();
    let text = place.read("r/experiment.toml");
    has(&text, "ready_http = \"2\"");
}

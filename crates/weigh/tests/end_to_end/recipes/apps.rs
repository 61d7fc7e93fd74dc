//! Recipes of application servers and stores: started, asked, stopped, and nothing left.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::common::has;
use crate::common::started::{Started, ask, tell};

/// The length of Node's page: that of the page in the write-up whose experiment uses it.
const PAGE_BYTES: usize = 129;

#[test]
fn node_answers_with_one_process_and_with_a_cluster() {
    for (processes, shared) in [(1, false), (3, false), (3, true)] {
        let params = format!("processes = {processes}, shared_socket = {shared}");
        let Some(server) = Started::start("node", &params, &[]) else {
            return;
        };
        let page = ask(server.address, "/");
        assert_eq!((page.status, page.body.len()), (200, PAGE_BYTES));
        assert_eq!(ask(server.address, "/absent").status, 404);
        // The first process of a cluster does not serve.
        let expected = if processes == 1 { 1 } else { processes + 1 };
        assert_eq!(server.processes().len() as i64, expected);
        server.stop();
    }
}

#[test]
fn node_keeps_connections_only_when_asked_to() {
    for keep in [true, false] {
        let params = format!("keepalive = {keep}");
        let Some(server) = Started::start("node", &params, &[]) else {
            return;
        };
        let head = tell(server.address, "GET", "/", "").head;
        assert_eq!(head.contains("connection: close"), !keep, "{head}");
        server.stop();
    }
}

#[test]
fn nginx_stands_in_front_of_one_node_and_of_three() {
    let one = Started::start("node", "", &[]);
    let Some(one) = one else { return };
    let others = [0, 1].map(|_| Started::start("node", "", &[]).unwrap());
    let all = vec![one.behind(), others[0].behind(), others[1].behind()];
    for (upstreams, cache) in [(vec![one.behind()], false), (all, true)] {
        let params = format!("upstream_keepalive = 16, cache = {cache}");
        let Some(nginx) = Started::over("nginx", &params, upstreams) else {
            return;
        };
        for _ in 0..4 {
            let page = ask(nginx.address, "/");
            assert_eq!((page.status, page.body.len()), (200, PAGE_BYTES));
            assert!(page.body.contains("weigh: it works"));
        }
        let again = ask(nginx.address, "/").head;
        assert_eq!(again.contains("x-cache-status: hit"), cache, "{again}");
        nginx.stop();
    }
    one.stop();
    others.into_iter().for_each(Started::stop);
}

/// Sends a command as a line and reads what comes back at once.
fn redis(address: SocketAddr, command: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(format!("{command}\r\nQUIT\r\n").as_bytes())
        .unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said.strip_suffix("+OK\r\n").unwrap_or(&said).to_owned()
}

#[test]
fn redis_keeps_what_it_is_told() {
    let params = "append_only = true";
    let Some(server) = Started::start("redis", params, &[]) else {
        return;
    };
    assert_eq!(redis(server.address, "SET one 1"), "+OK\r\n");
    assert_eq!(redis(server.address, "INCR one"), ":2\r\n");
    let kept = redis(server.address, "CONFIG GET save");
    assert!(kept.ends_with("$0\r\n\r\n"), "{kept}");
    server.stop();
}

#[test]
fn the_small_twitter_posts_follows_and_shows_timelines() {
    let Some(store) = Started::start("redis", "", &[]) else {
        return;
    };
    // What was there before is gone when it starts.
    redis(store.address, "LPUSH all 99999");
    let params = "users = 20";
    let Some(app) = Started::over("retwis", params, vec![store.behind()]) else {
        return;
    };
    assert_eq!(redis(store.address, "GET posts"), "$3\r\n100\r\n");
    let hello = ask(app.address, "/hello");
    assert_eq!((hello.status, hello.body.as_str()), (200, "Hello, world!"));
    let newest = ask(app.address, "/").body;
    assert_eq!(newest.matches("<li>").count(), 20, "{newest}");
    let profile = ask(app.address, "/profile/u3").body;
    assert_eq!(profile.matches("<b>u3</b>").count(), 5, "{profile}");
    has(&profile, "10 followers, follows 10");

    // u4 follows u5 and not u3; who follows sees, and nobody else.
    let said = "a <new> one";
    let posted = tell(app.address, "POST", "/timeline/u5", said);
    assert_eq!((posted.status, posted.body.as_str()), (200, "posted"));
    let shown = "<b>u5</b>: a &lt;new&gt; one";
    let sees = |user: &str| {
        ask(app.address, &format!("/timeline/{user}"))
            .body
            .contains(shown)
    };
    assert!(sees("u4") && sees("u5") && !sees("u6"));
    assert_eq!(tell(app.address, "POST", "/follow/u6/u5", "").status, 200);
    tell(app.address, "POST", "/timeline/u5", said);
    assert!(sees("u6"));
    assert_eq!(tell(app.address, "POST", "/timeline/u5", "").status, 400);
    assert_eq!(ask(app.address, "/absent").status, 404);
    app.stop();
    store.stop();
}

//! Recipes of servers with PHP, and of what they serve: started, asked, stopped, and nothing left.

use crate::common::has;
use crate::common::started::{Started, Upstream, ask};

/// Looks at a static file: its status and length, and that it ends as it should.
fn has_files(server: &Started) {
    let hello = ask(server.address, "/hello.txt");
    assert_eq!((hello.status, hello.body.as_str()), (200, "Hello, world!"));
    for (path, bytes) in [("/100kB.txt", 100_000), ("/1MB.txt", 1_000_000)] {
        let file = ask(server.address, path);
        assert_eq!((file.status, file.body.len()), (200, bytes), "{path}");
        let last = format!("{:05} The quick", bytes / 50 - 1);
        assert!(file.body.contains(&last), "{path} lacks `{last}`");
        assert!(file.body.ends_with("dog\n"));
    }
}

/// What both PHP servers answer at `/hello.php` and `/front.php`.
fn has_pages(server: &Started) -> String {
    let hello = ask(server.address, "/hello.php");
    assert_eq!((hello.status, hello.body.as_str()), (200, "Hello, world!"));
    let front = ask(server.address, "/front.php");
    assert_eq!(front.status, 200, "{}", front.body);
    let body = front.body;
    has(&body, "The newest of 200 articles");
    assert_eq!(body.matches("<article id=").count(), 10);
    assert!(!body.contains('{'), "a template was not filled in: {body}");
    assert_eq!(ask(server.address, "/front.php").body, body);
    body
}

#[test]
fn both_php_servers_give_the_same_pages() {
    let params = "workers = 3";
    let Some(fpm) = Started::start("php-fpm", params, &[]) else {
        return;
    };
    let proxy = "upstream_protocol = fastcgi, passed = php, files = [100kB.txt 1MB.txt]";
    let Some(nginx) = Started::over("nginx", proxy, vec![fpm.behind()]) else {
        return;
    };
    let through_fpm = has_pages(&nginx);
    has_files(&nginx);
    assert!(ask(nginx.address, "/").body.contains("weigh: it works"));
    assert_eq!(ask(nginx.address, "/absent.php").status, 404);
    nginx.stop();
    let cached = "upstream_protocol = fastcgi, cache = true";
    let nginx = Started::over("nginx", cached, vec![fpm.behind()]).unwrap();
    ask(nginx.address, "/front.php");
    let again = ask(nginx.address, "/front.php");
    has(&again.head, "x-cache-status: hit");
    assert_eq!(again.body, through_fpm);
    nginx.stop();
    fpm.stop();

    let params = "workers = 3, files = [100kB.txt 1MB.txt]";
    let Some(mut apache) = Started::start("apache-php", params, &[]) else {
        return;
    };
    assert_eq!(has_pages(&apache), through_fpm);
    has_files(&apache);
    let log = apache.log("error.log");
    assert!(!log.to_lowercase().contains("error"), "{log}");
    apache.stop();
}

#[test]
fn nginx_says_so_when_the_php_processes_are_gone() {
    let Some(fpm) = Started::start("php-fpm", "", &[]) else {
        return;
    };
    let proxy = "upstream_protocol = fastcgi";
    let Some(nginx) = Started::over("nginx", proxy, vec![fpm.behind()]) else {
        return;
    };
    assert_eq!(ask(nginx.address, "/hello.php").status, 200);
    fpm.stop();
    assert_eq!(ask(nginx.address, "/hello.php").status, 502);
    nginx.stop();
}

#[test]
fn apache_serves_files_under_every_mpm() {
    for mpm in ["event", "worker", "prefork"] {
        let params = format!("mpm = {mpm}, files = [100kB.txt 1MB.txt]");
        let Some(server) = Started::start("apache", &params, &[]) else {
            return;
        };
        has_files(&server);
        server.stop();
    }
}

#[test]
fn apache_balances_over_its_upstreams_with_and_without_kept_connections() {
    let (one, two) = (Upstream::start("one"), Upstream::start("two"));
    for (keep, balance) in [(true, "byrequests"), (false, "bybusyness")] {
        let params = format!("upstream_keepalive = {keep}, balance = {balance}");
        let Some(server) = Started::start("apache", &params, &[&one, &two]) else {
            return;
        };
        one.taken();
        two.taken();
        let mut bodies: Vec<_> = (0..6).map(|_| ask(server.address, "/").body).collect();
        bodies.sort();
        assert_eq!(bodies, ["one", "one", "one", "two", "two", "two"]);
        let large = ask(server.address, "/large").body.len();
        assert_eq!(large, crate::common::started::LARGE_BYTES);
        let (first, second) = (one.taken(), two.taken());
        let requests = first.1.len() + second.1.len();
        assert_eq!(requests, 7);
        if !keep {
            assert_eq!(first.0 + second.0, 7, "a connection was kept");
        }
        server.stop();
    }
}

#[test]
fn both_php_servers_have_a_wiki_of_their_own() {
    let page = "/index.php?title=Main_Page";
    let words = "MediaWiki has been installed";
    let caches = "main_cache = database";
    let Some(mut apache) = Started::start("mediawiki-apache", caches, &[]) else {
        return;
    };
    for _ in 0..2 {
        let answered = ask(apache.address, page);
        has(&answered.body, words);
    }
    let log = apache.log("error.log");
    // MediaWiki warns of a lock that another request has removed already: where the machine is slow,
    // several requests for readiness are under way.
    let is_harmless = |line: &&str| line.contains("FSLockManager");
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("PHP ")).collect();
    assert!(warnings.iter().all(is_harmless), "{log}");
    let Some(fpm) = Started::start("mediawiki-fpm", "", &[]) else {
        return;
    };
    let proxy = "upstream_protocol = fastcgi, passed = php, script_root = /usr/share/mediawiki";
    let nginx = Started::over("nginx", proxy, vec![fpm.behind()]).unwrap();
    let answered = ask(nginx.address, page);
    assert_eq!(answered.status, 200, "{}", answered.body);
    has(&answered.body, words);
    nginx.stop();
    fpm.stop();
    apache.stop();
}

#[test]
fn a_wiki_keeps_its_pages_in_the_mariadb_behind_it() {
    let Some(database) = Started::start("mariadb", "", &[]) else {
        return;
    };
    let Some(apache) = Started::over("mediawiki-apache", "", vec![database.behind()]) else {
        return;
    };
    let answered = ask(apache.address, "/index.php?title=Main_Page");
    assert_eq!(answered.status, 200, "{}", answered.body);
    let words = "MediaWiki has been installed";
    has(&answered.body, words);
    let data = database.behind().dir.unwrap().join("data");
    let has_pages = std::fs::read_dir(&data).unwrap().any(|entry| {
        let folder = entry.unwrap();
        let is_wiki = folder.file_name().to_string_lossy().starts_with("weigh_");
        is_wiki && folder.path().join("page.frm").exists()
    });
    assert!(has_pages, "{}", data.display());
    apache.stop();
    database.stop();
}

//! The corpora of the fuzz targets hold without a fuzzer too, cut at every place, and so do randomly
//! mutated copies of their files.

#[path = "../../../../fuzz/checks.rs"]
mod checks;
// Files are cut at every place here, so `files_hold` is not needed.
#[allow(dead_code)]
#[path = "../../../../fuzz/replay.rs"]
mod replay;

use checks::{CHECKS, Cuts};

/// Files up to this long are cut at every place; their cost grows with the square of the length.
const SMALL_BYTES: usize = 4096;

#[test]
fn every_file_of_the_corpora_reads_the_same_in_any_pieces() {
    for (name, check) in CHECKS {
        for (path, data) in replay::files(&[&format!("fuzz/corpus/{name}")]) {
            let cuts = if data.len() <= SMALL_BYTES {
                Cuts::All
            } else {
                Cuts::Some
            };
            // Shown only when the check fails.
            println!("{}", path.display());
            check(&data, cuts);
        }
    }
}

/// A test for each check, since `WEIGH_FUZZ_S` gives each of them its time.
macro_rules! mutated {
    ($($test:ident: $name:ident,)*) => {
        $(#[test]
        fn $test() {
            let folder = [concat!("fuzz/corpus/", stringify!($name))];
            replay::mutated_copies_hold(&folder, |data| checks::$name(data, Cuts::Some), 20);
        })*
    };
}

mutated! {
    mutated_requests_hold: request,
    mutated_responses_hold: response,
    mutated_chunks_hold: chunked,
    mutated_proxy_headers_hold: proxy_protocol,
    mutated_connections_of_http2_hold: http2,
    mutated_connections_of_http3_hold: http3,
    mutated_websockets_hold: websocket,
    mutated_calls_hold: grpc,
}

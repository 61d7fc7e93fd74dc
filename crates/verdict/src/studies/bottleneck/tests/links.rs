//! Links whose packets pass through user space.

use super::*;

#[test]
fn a_full_thread_of_the_links_is_suspected_and_one_that_is_not_full_is_only_a_figure() {
    let with = |had, wanted| {
        reading(&rates(1.0, 1.0, 1.0), |p| {
            p.links = Some(ServerSample {
                wanted: vec![wanted, 0.0],
                ..server(had, &[had, 0.0])
            });
        })
    };
    for (had, wanted) in [(0.97, 0.99), (0.5, 0.98)] {
        let seen = judged(&with(had, wanted), Bottleneck::Network, Standing::Suspected);
        assert!(
            matches!(seen, Evidence::Network { threads: Some(it), .. } if is(it.had, had)),
            "{seen:?}"
        );
    }
    let seen = judged(&with(0.4, 0.45), Bottleneck::Unknown, Standing::Unknown);
    assert!(
        matches!(seen, Evidence::Unexplained { links: Some(it), .. } if is(it.had, 0.4)),
        "{seen:?}"
    );
}

use super::*;

/// Runs around a level with a spread of `sd`, in a fixed order that looks random.
fn around(level: f64, runs: usize, sd: f64) -> Vec<Point> {
    let steps = [0.3, -1.1, 0.8, -0.2, 1.3, -0.9, 0.1, -0.4, 1.0, -0.7];
    (0..runs)
        .map(|i| Point {
            value: level + sd * steps[i * 7 % 10],
            standard_error: sd,
            degrees: 9.0,
        })
        .collect()
}

#[test]
fn a_change_is_found_where_it_is_and_how_large_it_is() {
    let points = [around(-0.2, 20, 0.01), around(-0.25, 10, 0.01)].concat();
    let found = changes(&points, LEVEL, true);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].at, found[0].confirmed), (20, true));
    assert!(found[0].low < -0.05 && -0.05 < found[0].high, "{found:?}");
    assert_eq!(changes(&points, LEVEL, true), found);
}

#[test]
fn the_first_run_of_a_new_level_is_possible_and_the_third_confirms_it() {
    for after in 1..=4 {
        let points = [around(-0.2, 20, 0.01), around(-0.3, after, 0.01)].concat();
        let found = changes(&points, LEVEL, true);
        assert_eq!(found.len(), 1, "{after}: {found:?}");
        assert_eq!((found[0].at, found[0].confirmed), (20, after >= 3));
        if after == 1 {
            assert_eq!(changes(&points, LEVEL, false), []);
        }
    }
}

#[test]
fn a_single_spike_is_no_change_once_a_run_follows() {
    for place in [3, 10, 18] {
        let mut points = around(-0.2, 20, 0.01);
        points[place].value -= 0.5;
        assert_eq!(changes(&points, LEVEL, true), [], "{place}");
    }
}

#[test]
fn a_spike_hides_no_change() {
    let mut points = [around(0.0, 20, 0.01), around(0.05, 10, 0.01)].concat();
    points[8].value += 0.6;
    points[25].value -= 0.6;
    let found = changes(&points, LEVEL, true);
    assert_eq!(found.iter().map(|c| c.at).collect::<Vec<_>>(), [20]);
}

#[test]
fn two_changes_in_a_long_series_are_both_found() {
    let parts = [(0.0, 40), (0.06, 50), (0.0, 40)];
    let points: Vec<Point> = parts
        .iter()
        .flat_map(|(level, runs)| around(*level, *runs, 0.01))
        .collect();
    let found = changes(&points, LEVEL, true);
    assert_eq!(found.iter().map(|c| c.at).collect::<Vec<_>>(), [40, 90]);
}

#[test]
fn a_run_that_is_known_badly_weighs_little() {
    let mut points = around(0.0, 24, 0.005);
    for point in &mut points[12..18] {
        point.value += 0.08;
        point.standard_error = 0.2;
    }
    assert_eq!(changes(&points, LEVEL, true), []);
}

#[test]
fn few_or_equal_runs_have_no_change() {
    for runs in 0..12 {
        assert_eq!(changes(&around(0.1, runs, 0.01), LEVEL, true), []);
        assert_eq!(changes(&around(0.1, runs, 0.0), LEVEL, true), []);
    }
}

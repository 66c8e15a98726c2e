use super::*;

#[test]
fn a_flood_is_told_of_at_once_and_then_now_and_then() {
    let mut refusals = Refusals::default();
    let told: Vec<_> = (0..=400)
        .filter_map(|n| {
            let now = Time(n * 50_000);
            refusals.note(now).map(|times| (now.0 / 1_000_000, times))
        })
        .collect();
    assert_eq!(told, [(0, 1), (10, 200), (20, 200)]);
}

#[test]
fn the_end_of_a_flood_is_told_of_too() {
    let mut refusals = Refusals::default();
    assert_eq!(refusals.note(Time(0)), Some(1));
    assert_eq!(refusals.due(Time(20_000_000)), None);
    assert_eq!(refusals.note(Time(20_000_000)), Some(1));
    assert_eq!(refusals.note(Time(21_000_000)), None);
    assert_eq!(refusals.due(Time(29_000_000)), None);
    assert_eq!(refusals.due(Time(30_000_000)), Some(1));
    assert_eq!(refusals.due(Time(40_000_000)), None);
}

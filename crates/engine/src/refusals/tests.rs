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

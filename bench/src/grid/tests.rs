use super::*;

#[test]
fn a_pair_is_read_as_it_is_written() {
    for pair in THIN {
        assert_eq!(pair.to_string().parse(), Ok(pair));
    }
    for text in ["", "3", "3x", "x3", "0x3", "3x0", "3x1000", "auto"] {
        assert!(text.parse::<Pair>().is_err(), "{text}");
    }
}

#[test]
fn a_grid_is_thin_or_full_or_what_it_is_said_to_be() {
    let grid = |text: &str| text.parse::<Grid>().map(|grid| grid.0);
    let full = grid("full").unwrap();
    assert_eq!(full.len(), 48);
    assert!(grid("thin").unwrap().iter().all(|pair| full.contains(pair)));
    assert_eq!(grid("1x4, 5x6").unwrap(), [Pair::of(1, 4), Pair::of(5, 6)]);
    assert!(grid("thick").is_err());
}

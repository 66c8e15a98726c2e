use super::*;

fn chart(values: &[Option<f64>]) -> LineChart {
    LineChart {
        title: "a < b".into(),
        y_label: "tps",
        x_label: "clients",
        steps: vec!["1".into(), "16".into(), "64".into()],
        series: vec![Series { colour: 0, name: "one".into(), values: values.to_vec() }],
        show: |value| format!("{value:.0}"),
    }
}

#[test]
fn a_chart_of_nothing_is_no_chart() {
    assert_eq!(chart(&[None, None, None]).draw(), None);
}

#[test]
fn a_missing_value_is_a_missing_point_and_titles_are_escaped() {
    let svg = chart(&[Some(3.0), None, Some(70.0)]).draw().unwrap();
    assert_eq!(svg.matches("<circle").count(), 2);
    assert!(svg.contains("a &lt; b") && !svg.contains("a < b"));
}

#[test]
fn axes_hold_all_values_between_round_ends() {
    let axis = Axis::over([3.0, 38_000.0].iter()).unwrap();
    assert_eq!(axis.high, 40_000.0);
    assert_eq!(axis.ticks(), [0.0, 10_000.0, 20_000.0, 30_000.0, 40_000.0]);
    assert!((axis.y(40_000.0) - TOP).abs() < 0.001);
}

//! Two small charts as SVG: lines over named steps, and horizontal bars.
//!
//! A chart carries its own background for light and for dark, and names its lines at their ends
//! and its bars beside them: there is no legend to look up.

use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 215.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 50.0;
/// Labels at the ends of lines stand at least this far from each other.
const LABEL_GAP: f64 = 17.0;
const BAR_HEIGHT: f64 = 22.0;
const BAR_STEP: f64 = 30.0;
const GROUP_GAP: f64 = 34.0;
const BAR_LEFT: f64 = 160.0;

const STYLE: &str = "\
.back{fill:#ffffff}.ink{fill:#1f2328}.soft{fill:#59636e}.grid{stroke:#d1d9e0;stroke-width:1}\
.line{fill:none;stroke-width:2.5;stroke-linejoin:round}\
.s0{stroke:#6e7781}.f0{fill:#6e7781}.s1{stroke:#bc4c00}.f1{fill:#bc4c00}\
.s2{stroke:#0969da}.f2{fill:#0969da}.s3{stroke:#8250df}.f3{fill:#8250df}\
.s4{stroke:#1a7f37}.f4{fill:#1a7f37}\
@media(prefers-color-scheme:dark){.back{fill:#0d1117}.ink{fill:#f0f6fc}.soft{fill:#9198a1}\
.grid{stroke:#3d444d}.s0{stroke:#9198a1}.f0{fill:#9198a1}.s1{stroke:#f0883e}.f1{fill:#f0883e}\
.s2{stroke:#58a6ff}.f2{fill:#58a6ff}.s3{stroke:#bc8cff}.f3{fill:#bc8cff}\
.s4{stroke:#3fb950}.f4{fill:#3fb950}}";

/// A line: a colour from 0 to 4, a name, and a value for each step that it has one for.
pub(crate) struct Series {
    pub(crate) colour: usize,
    pub(crate) name: String,
    pub(crate) values: Vec<Option<f64>>,
}

/// Lines over steps.
pub(crate) struct LineChart {
    pub(crate) title: String,
    pub(crate) y_label: &'static str,
    pub(crate) x_label: &'static str,
    pub(crate) steps: Vec<String>,
    pub(crate) series: Vec<Series>,
    pub(crate) show: fn(f64) -> String,
}

impl LineChart {
    /// The chart as a file; `None` of no values.
    pub(crate) fn draw(&self) -> Option<String> {
        let axis = Axis::over(self.series.iter().flat_map(|s| s.values.iter().flatten()))?;
        let mut svg = begin(HEIGHT, &self.title, self.y_label);
        for tick in axis.ticks() {
            let y = axis.y(tick);
            line(&mut svg, LEFT, WIDTH - RIGHT, y);
            text(&mut svg, LEFT - 8.0, y + 4.0, "end", "soft", &(self.show)(tick));
        }
        for (at, step) in self.steps.iter().enumerate() {
            text(&mut svg, self.x(at), HEIGHT - BOTTOM + 20.0, "middle", "soft", step);
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        text(&mut svg, middle, HEIGHT - 10.0, "middle", "soft", self.x_label);
        let mut ends = Vec::new();
        for series in &self.series {
            let points = series.values.iter().enumerate();
            let points: Vec<(f64, f64, f64)> = points
                .filter_map(|(at, value)| value.map(|value| (self.x(at), axis.y(value), value)))
                .collect();
            self.trace(&mut svg, series, &points);
            ends.extend(points.last().map(|last| (series, last.1, last.2)));
        }
        ends.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut free = TOP;
        for (series, y, value) in ends {
            let y = y.max(free);
            free = y + LABEL_GAP;
            let label = format!("{} {}", series.name, (self.show)(value));
            let class = format!("f{}", series.colour);
            text(&mut svg, WIDTH - RIGHT + 10.0, y + 4.0, "start", &class, &label);
        }
        Some(svg + "</svg>\n")
    }

    fn trace(&self, svg: &mut String, series: &Series, points: &[(f64, f64, f64)]) {
        let colour = series.colour;
        let path: Vec<String> = points.iter().map(|(x, y, _)| format!("{x:.1},{y:.1}")).collect();
        put(
            svg,
            format_args!("<polyline class=\"line s{colour}\" points=\"{}\"/>", path.join(" ")),
        );
        for (x, y, _) in points {
            put(
                svg,
                format_args!("<circle class=\"f{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>"),
            );
        }
    }

    fn x(&self, step: usize) -> f64 {
        let width = WIDTH - RIGHT - LEFT - 40.0;
        LEFT + 20.0 + width * step as f64 / (self.steps.len().max(2) - 1) as f64
    }
}

/// A bar: a colour from 0 to 4, a name and a value.
pub(crate) struct Bar {
    pub(crate) colour: usize,
    pub(crate) name: String,
    pub(crate) value: f64,
}

/// Horizontal bars in named groups.
pub(crate) struct BarChart {
    pub(crate) title: String,
    pub(crate) unit: &'static str,
    pub(crate) groups: Vec<(String, Vec<Bar>)>,
    pub(crate) show: fn(f64) -> String,
}

impl BarChart {
    /// The chart as a file; `None` of no bars.
    pub(crate) fn draw(&self) -> Option<String> {
        let bars = self.groups.iter().flat_map(|(_, bars)| bars);
        let most = bars.clone().map(|bar| bar.value).reduce(f64::max)?.max(f64::MIN_POSITIVE);
        let groups = self.groups.len() as f64;
        let height = TOP + 16.0 + groups * GROUP_GAP + bars.count() as f64 * BAR_STEP;
        let mut svg = begin(height, &self.title, self.unit);
        let mut y = TOP + 8.0;
        for (name, bars) in &self.groups {
            text(&mut svg, 20.0, y + 14.0, "start", "soft", name);
            y += GROUP_GAP - 10.0;
            for bar in bars {
                let width = (WIDTH - BAR_LEFT - 110.0) * bar.value / most;
                let class = format!("f{}", bar.colour);
                text(&mut svg, BAR_LEFT - 8.0, y + 16.0, "end", &class, &bar.name);
                put(
                    &mut svg,
                    format_args!(
                        "<rect class=\"{class}\" x=\"{BAR_LEFT}\" y=\"{y:.1}\" \
                         width=\"{width:.1}\" \
                         height=\"{BAR_HEIGHT}\" rx=\"2\"/>"
                    ),
                );
                let label = (self.show)(bar.value);
                text(&mut svg, BAR_LEFT + width + 8.0, y + 16.0, "start", "ink", &label);
                y += BAR_STEP;
            }
            y += 10.0;
        }
        Some(svg + "</svg>\n")
    }
}

/// The vertical axis: values to heights, from zero to a round number.
struct Axis {
    high: f64,
}

impl Axis {
    fn over<'a>(values: impl Iterator<Item = &'a f64>) -> Option<Self> {
        let high = values.copied().fold(0.0, f64::max);
        let step = (high > 0.0).then(|| round_step(high / 4.0))?;
        Some(Self { high: (high / step).ceil() * step })
    }

    fn ticks(&self) -> Vec<f64> {
        let step = round_step(self.high / 4.0);
        // A little above the top: sums of floats miss it by a hair.
        std::iter::successors(Some(0.0), |tick| Some(tick + step))
            .take_while(|tick| *tick <= self.high * 1.001)
            .collect()
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - value / self.high * (HEIGHT - BOTTOM - TOP)
    }
}

/// The next of 1, 2, 5, 10, 20, 50, … that is not below `value`.
fn round_step(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|step| step * power);
    steps.into_iter().find(|step| *step >= value).unwrap_or(10.0 * power)
}

fn begin(height: f64, title: &str, unit: &str) -> String {
    let mut svg = String::new();
    put(
        &mut svg,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             role=\"img\" font-family=\"system-ui,sans-serif\" font-size=\"13\">\
             <title>{}</title><style>{STYLE}</style>\
             <rect class=\"back\" width=\"{WIDTH}\" height=\"{height}\" rx=\"6\"/>\
             <text class=\"ink\" x=\"20\" y=\"26\" font-size=\"16\" font-weight=\"600\">{}</text>",
            escaped(title),
            escaped(title)
        ),
    );
    text(&mut svg, 20.0, 44.0, "start", "soft", unit);
    svg
}

fn line(svg: &mut String, x1: f64, x2: f64, y: f64) {
    put(
        svg,
        format_args!("<line class=\"grid\" x1=\"{x1}\" x2=\"{x2}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"),
    );
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, class: &str, words: &str) {
    put(
        svg,
        format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            escaped(words)
        ),
    );
}

fn put(svg: &mut String, element: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(svg, "{element}");
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests;

//! The bills of policies as a picture: cost against the edits that were without their text.
//!
//! A dot is a policy with a cache of five minutes, a ring the same with one of an hour. Lower is cheaper, further left is
//! better for the work. What was recorded is a line: which text was in view then is not known.

use std::fmt::Write;

use session::price::{PriceRow, PriceTable};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 60.0;
/// Steps between the marks of an axis, at most.
const MARKS: f64 = 8.0;
/// The width of a letter and the height of a line, about.
const LETTER: f64 = 7.0;
const LINE: f64 = 15.0;

/// Draws a table.
pub(crate) fn plot(table: &PriceTable) -> String {
    let points: Vec<&PriceRow> = table.rows.iter().filter(|row| row.policy != "recorded").collect();
    let costs = table.rows.iter().flat_map(|row| [row.of_everything.five_minutes, row.of_everything.one_hour]);
    let (lowest, highest) = costs.fold((1.0_f64, 1.0_f64), |(low, high), cost| (low.min(cost), high.max(cost)));
    let missed = points.iter().map(|row| row.missed_share * 100.0).fold(1.0, f64::max);
    let across = Axis::new(0.0, missed * 1.15, (LEFT, WIDTH - RIGHT));
    let up = Axis::new(lowest - 0.05, highest + 0.05, (HEIGHT - BOTTOM, TOP));
    let mut svg = String::new();
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"24\" font-size=\"15\">Cost of recorded sessions, as a share of keeping everything</text>\n\
         <text x=\"{LEFT}\" y=\"41\" fill=\"#666\">dot: cache of 5 minutes, ring: 1 hour</text>\n"
    );
    frame(&mut svg, &across, &up);
    for row in table.rows.iter().filter(|row| row.policy == "recorded") {
        let y = up.at(row.of_everything.five_minutes);
        let (end, above) = (WIDTH - RIGHT, y - 5.0);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{end}\" y2=\"{y:.1}\" stroke=\"#888\" stroke-dasharray=\"5 4\"/>\n\
             <text x=\"{end}\" y=\"{above:.1}\" text-anchor=\"end\" fill=\"#666\">as recorded</text>"
        );
    }
    let mut labels = PlacedLabels::default();
    for row in points {
        let x = across.at(row.missed_share * 100.0);
        let (dot, ring) = (up.at(row.of_everything.five_minutes), up.at(row.of_everything.one_hour));
        let colour = if row.policy == "ours" { "#c2410c" } else { "#1d4ed8" };
        let (label_x, label_y) = labels.place(x + 9.0, dot + 4.0, &row.policy);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{dot:.1}\" x2=\"{x:.1}\" y2=\"{ring:.1}\" stroke=\"{colour}\" stroke-opacity=\"0.4\"/>\n\
             <circle cx=\"{x:.1}\" cy=\"{ring:.1}\" r=\"4.5\" fill=\"white\" stroke=\"{colour}\"/>\n\
             <circle cx=\"{x:.1}\" cy=\"{dot:.1}\" r=\"4.5\" fill=\"{colour}\"/>\n\
             <text x=\"{label_x:.1}\" y=\"{label_y:.1}\">{}</text>",
            escaped(&row.policy)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// Axes with their marks and names.
fn frame(svg: &mut String, across: &Axis, up: &Axis) {
    let (left, right, top, bottom) = (LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM);
    for mark in up.marks() {
        let y = up.at(mark);
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{mark:.2}</text>",
            left - 8.0,
            y + 4.0
        );
    }
    for mark in across.marks() {
        let x = across.at(mark);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{bottom}\" x2=\"{x:.1}\" y2=\"{:.1}\" stroke=\"#222\"/>\n\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{mark:.1} %</text>",
            bottom + 5.0,
            bottom + 20.0
        );
    }
    let (middle, below) = ((left + right) / 2.0, HEIGHT - 14.0);
    let _ = writeln!(
        svg,
        "<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#222\"/>\n\
         <text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">edits whose text was not in view</text>"
    );
}

/// From figures to places on the picture.
struct Axis {
    figures: (f64, f64),
    places: (f64, f64),
}

impl Axis {
    fn new(from: f64, to: f64, places: (f64, f64)) -> Self {
        Self { figures: (from, to), places }
    }

    fn at(&self, figure: f64) -> f64 {
        let ((from, to), (first, last)) = (self.figures, self.places);
        first + (figure - from) / (to - from) * (last - first)
    }

    /// Round figures to mark.
    fn marks(&self) -> Vec<f64> {
        let (from, to) = self.figures;
        let rough = (to - from) / MARKS;
        let power = 10.0_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|one| one * power).find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (from / step).ceil() as i64;
        let last = (to / step).floor() as i64;
        (first..=last).map(|mark| mark as f64 * step).collect()
    }
}

/// Labels that were placed, so that none is on another.
#[derive(Default)]
struct PlacedLabels {
    placed: Vec<(f64, f64, f64)>,
}

impl PlacedLabels {
    /// The nearest free place for a label.
    fn place(&mut self, x: f64, y: f64, text: &str) -> (f64, f64) {
        let width = text.chars().count() as f64 * LETTER;
        let x = x.min(WIDTH - RIGHT - width);
        let is_free = |y: f64| {
            let lies_on = |(other_x, other_y, other_width): &(f64, f64, f64)| {
                (other_y - y).abs() < LINE && *other_x < x + width && x < other_x + other_width
            };
            !self.placed.iter().any(lies_on)
        };
        let steps = (0..20).flat_map(|step| [f64::from(step), -f64::from(step)]);
        let y = steps.map(|step| y + step * LINE).find(|y| is_free(*y)).unwrap_or(y);
        self.placed.push((x, y, width));
        (x, y)
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

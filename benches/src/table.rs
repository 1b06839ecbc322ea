//! The table: a line for every figure, with its target where it has one.

use std::fmt;

/// One figure.
#[derive(Debug)]
pub(crate) struct Row {
    name: String,
    measured: String,
    target: String,
    verdict: Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Met,
    Missed,
    /// Nothing to compare with: a figure for the reader.
    Open,
}

/// What a figure counts, and so how it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unit {
    /// How many times as much.
    Times,
    /// A share, given as a fraction.
    Percent,
    /// Given as such.
    Milliseconds,
    /// Given as such.
    Microseconds,
    /// Tokens of input that is not cached, or what costs as much.
    Tokens,
    /// So many.
    Count,
}

impl Unit {
    fn write(self, value: f64) -> String {
        match self {
            Self::Times => format!("{value:.2} ×"),
            Self::Percent => format!("{:.2} %", value * 100.0),
            Self::Milliseconds => format!("{value:.1} ms"),
            Self::Microseconds => format!("{value:.0} µs"),
            Self::Tokens | Self::Count => format!("{value:.0}"),
        }
    }
}

impl Row {
    /// A figure that must not be above its target.
    pub(crate) fn at_most(name: impl Into<String>, unit: Unit, value: f64, target: f64) -> Self {
        Self::judged(name, unit, value, format!("≤ {}", unit.write(target)), value <= target)
    }

    /// A figure that must not be below its target.
    pub(crate) fn at_least(name: impl Into<String>, unit: Unit, value: f64, target: f64) -> Self {
        Self::judged(name, unit, value, format!("≥ {}", unit.write(target)), value >= target)
    }

    /// A figure without a target.
    pub(crate) fn figure(name: impl Into<String>, measured: impl Into<String>) -> Self {
        Self { name: name.into(), measured: measured.into(), target: String::new(), verdict: Verdict::Open }
    }

    fn judged(name: impl Into<String>, unit: Unit, value: f64, target: String, met: bool) -> Self {
        let verdict = if met { Verdict::Met } else { Verdict::Missed };
        Self { name: name.into(), measured: unit.write(value), target, verdict }
    }
}

/// All figures, by case.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<(&'static str, Row)>);

impl Table {
    /// Adds a case's rows.
    pub(crate) fn extend(&mut self, case: &'static str, rows: Vec<Row>) {
        self.0.extend(rows.into_iter().map(|row| (case, row)));
    }

    /// Whether a target was missed.
    pub(crate) fn is_missed(&self) -> bool {
        self.0.iter().any(|(_, row)| row.verdict == Verdict::Missed)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widest = |cell: fn(&Row) -> &str, heading: &str| {
            self.0.iter().map(|(_, row)| cell(row).chars().count()).chain([heading.len()]).max().unwrap_or_default()
        };
        let name = widest(|row| &row.name, "name");
        let measured = widest(|row| &row.measured, "measured");
        let target = widest(|row| &row.target, "target");
        writeln!(f, "\n{:7} {:name$}  {:>measured$}  {:>target$}", "case", "name", "measured", "target")?;
        let mut last = "";
        for (case, row) in &self.0 {
            let shown = if *case == last { "" } else { case };
            last = case;
            let verdict = match row.verdict {
                Verdict::Met => "  ok",
                Verdict::Missed => "  FAIL",
                Verdict::Open => "",
            };
            let line =
                format!("{shown:7} {:name$}  {:>measured$}  {:>target$}{verdict}", row.name, row.measured, row.target);
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

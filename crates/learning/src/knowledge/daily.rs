//! The date for a session that keeps a daily log. The prompt holds only the pattern of the log's path, so that its
//! bytes stay; the date comes with the first message, and again when a new day has begun.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use session::{LineMeta, Session};
use transcript::{Injected, Purpose};

use super::{AttachedText, Knowledge};

/// Switch of the daily log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DailyLog {
    /// It saves memories.
    #[default]
    None,
    /// It appends to a daily log, and a dream distils it.
    Log,
}

impl Knowledge {
    /// With or without a daily log. A resumed session was told the date of its last line.
    #[must_use]
    pub fn with_daily_log(mut self, daily: DailyLog, session: &Session) -> Self {
        let newest = session.log().lines().iter().rev().find_map(|line| line.time);
        let told = newest.map(|at| at.to_zoned(TimeZone::system()).date());
        self.day = (daily == DailyLog::Log).then(|| told.unwrap_or_else(|| self.today()));
        self
    }

    /// A note for the model when a new day has begun.
    pub fn new_day(&mut self) -> Option<AttachedText> {
        let today = self.today();
        let told = self.day.as_mut().filter(|day| **day != today)?;
        *told = today;
        let log = today.strftime("logs/%Y/%m/%Y-%m-%d.md");
        let day = today.strftime("%A, %Y-%m-%d");
        let text = format!("A new day has begun: today is {day}. The log is {log} from now on.");
        Some(AttachedText { text: Injected::new(Purpose::Day, &text), meta: LineMeta::default() })
    }

    fn today(&self) -> Date {
        self.world.now().to_zoned(TimeZone::system()).date()
    }
}

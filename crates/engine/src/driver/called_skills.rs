//! Skills that were called come back after a compaction, within limits: the model still works by them.

use extensions::restore::{UsedSkill, restored};
use session::{Error, LineMeta};
use transcript::{Injected, Purpose};

use crate::live::LiveSession;

/// Shows the skills that were called again after a compaction, the newest last.
pub(crate) fn restore(live: &mut LiveSession) -> Result<(), Error> {
    let used = live.session.called_skills().into_iter();
    let used = used.map(|(name, text)| UsedSkill { name, text: unframed(&text).to_owned() });
    for UsedSkill { name, text } in restored(&used.collect::<Vec<_>>()).into_iter().rev() {
        let text = Injected::new(Purpose::Skill, &text);
        live.session.inject(&text, LineMeta { skill: Some(name), ..LineMeta::default() })?;
    }
    Ok(())
}

/// A skill's text without its frame, so that what is cut off it does not leave the frame open.
fn unframed(text: &str) -> &str {
    let inner = text.trim().strip_prefix("<skill>\n").and_then(|text| text.strip_suffix("\n</skill>"));
    inner.unwrap_or(text)
}

//! What the doctor finds out, and what it means.

use serde::Serialize;

/// What a finding means for hakmem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Good,
    /// Works, but there is something to know.
    Note,
    /// It cannot be told whether hakmem serves the program, or all of it.
    Doubt,
    /// hakmem cannot serve the program, or not all of it.
    Obstacle,
}

/// Something that was found out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it means.
    pub level: Level,
    /// A word for programs, e.g. `static`.
    pub topic: &'static str,
    /// One sentence or less.
    pub text: String,
    /// What to do about it.
    pub advice: Option<String>,
}

impl Finding {
    /// Without advice.
    pub fn new(level: Level, topic: &'static str, text: impl Into<String>) -> Finding {
        Finding {
            level,
            topic,
            text: text.into(),
            advice: None,
        }
    }

    fn advise(self, advice: impl Into<String>) -> Finding {
        Finding {
            advice: Some(advice.into()),
            ..self
        }
    }

    /// Everything is as it should be.
    pub fn good(topic: &'static str, text: impl Into<String>) -> Finding {
        Finding::new(Level::Good, topic, text)
    }

    /// There is something to know.
    pub fn note(
        topic: &'static str,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding::new(Level::Note, topic, text).advise(advice)
    }

    /// It cannot be told whether hakmem serves.
    pub fn doubt(
        topic: &'static str,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding::new(Level::Doubt, topic, text).advise(advice)
    }

    /// hakmem is kept from serving.
    pub fn obstacle(
        topic: &'static str,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding::new(Level::Obstacle, topic, text).advise(advice)
    }
}

/// What is to be said of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// hakmem serves it.
    Served,
    /// It cannot be told.
    Unknown,
    /// hakmem does not serve it, or not all of it.
    NotServed,
}

impl Verdict {
    /// The worst of the findings decides.
    pub fn of(levels: impl IntoIterator<Item = Level>) -> Verdict {
        match levels.into_iter().max() {
            Some(Level::Obstacle) => Verdict::NotServed,
            Some(Level::Doubt) => Verdict::Unknown,
            Some(Level::Good | Level::Note) | None => Verdict::Served,
        }
    }
}

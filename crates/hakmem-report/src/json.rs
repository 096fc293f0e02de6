//! The result file itself, as JSON.

use hakmem_results::{ResultFile, FORMAT};
use hakmem_statistics::assess::assess_file;
use serde::Deserialize;

/// Why a text is not a result file that can be read.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// Not JSON, or cut off.
    #[error("not JSON: {0}; the file is damaged or was not written by `hakmem --json`")]
    NotJson(serde_json::Error),
    /// JSON, but of something else.
    #[error("no result file: it has no number \"format\"; give a file written by `hakmem --json`")]
    NoFormat,
    /// Written by a newer version.
    #[error(
        "format {found}, but this version of hakmem reads formats up to {FORMAT}: read it with \
         the version that wrote it, or a newer one"
    )]
    NewerFormat {
        /// The format of the file.
        found: u64,
    },
    /// A field is missing or has the wrong type.
    #[error("damaged result file: {0}; run the experiment again")]
    Damaged(serde_json::Error),
}

/// The format alone, which every version of the file has.
#[derive(Deserialize)]
struct Header {
    format: u64,
}

/// The file as JSON in one line: indented, one of all workloads is longer than what is read.
/// Figures that are not finite become `null`, which [`parse`] refuses.
pub fn render(file: &ResultFile) -> String {
    let json = serde_json::to_string(file);
    // Serialisation fails only for maps with keys that are no strings, which the types exclude.
    json.expect("a result file has string keys only") + "\n"
}

/// Reads what [`render`] wrote. What follows from the samples of a file of an older format is
/// computed anew, because verdicts of another method are not those that this version explains.
///
/// # Errors
/// Says whether the text is no JSON, no result file, of a newer format, or damaged, and where.
pub fn parse(text: &str) -> Result<ResultFile, ParseError> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(ParseError::NotJson)?;
    let header = Header::deserialize(&value).map_err(|_| ParseError::NoFormat)?;
    if header.format > u64::from(FORMAT) {
        return Err(ParseError::NewerFormat {
            found: header.format,
        });
    }
    // From the text once more, because then the error names the line and the column.
    let mut file: ResultFile = serde_json::from_str(text).map_err(ParseError::Damaged)?;
    if file.format < FORMAT {
        assess_file(&mut file);
        file.format = FORMAT;
    }
    Ok(file)
}

//! What somebody may have meant.

/// The name that is most like a wrong one, if one is like it at all.
pub(crate) fn nearest<'a>(
    wrong: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let likeness = |name: &'a str| (strsim::jaro_winkler(wrong, name), name);
    let near = names.into_iter().map(likeness).filter(|near| near.0 > 0.7);
    let nearest = near.max_by(|one, other| one.0.total_cmp(&other.0));
    nearest.map(|(_, name)| name)
}

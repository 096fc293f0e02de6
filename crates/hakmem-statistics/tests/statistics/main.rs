//! Figures, comparisons and verdicts.

mod figures;
mod many_comparisons;
mod one_comparison;
mod scaling;
mod support;

//! Holds nothing: Cargo wants a target, and the package exists for its lock file alone.

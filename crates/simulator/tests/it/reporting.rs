//! reporting

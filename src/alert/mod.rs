//! alert

//! Why an expression has no value.

/// An expression that could not be evaluated; every kind is the asker's to mend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    #[error("cannot parse `{expr}`: {reason}")]
    Parse { expr: String, reason: String },
    /// A part of the language that is not built.
    #[error("not supported here: {0}")]
    Unsupported(String),
    /// The expression is well formed, but its operands do not fit.
    #[error("{0}")]
    Execution(String),
    #[error("the query is too large: {0}")]
    TooLarge(String),
}

//! Plain types that every other module speaks: what an alert, a finding, a plan and a diagnosis are.
//!
//! Nothing here reads files, talks to the network or knows a front end. Types that reach JSON carry the field
//! names of the documented schemas, so that serialising one *is* writing the document.

pub mod alert;
pub mod category;
pub mod chunk;
pub mod decode;
pub mod diagnosis;
pub mod evidence;
pub mod history;
pub mod lang;
pub mod log;
pub mod metric;
pub mod plan;
pub mod session;
pub mod state;
pub mod status;
pub mod text;
pub mod time;
pub mod tool;

pub use alert::{Alert, AlertBatch, AlertStatus, Facts, PayloadShape, Severity, Symptom};
pub use category::Category;
pub use chunk::{Chunk, Found, Hit, RetrievalQuality, RetrievalVerdict};
pub use diagnosis::{
    Diagnosis, Hypothesis, HypothesisKey, Judged, NextStep, Reference, RootCause, RunStatus, SourceReport,
    SourceStatus, Timing, Usage, Verdict,
};
pub use evidence::{Evidence, EvidenceKind, Finding};
pub use history::{History, Matched, Precedent};
pub use lang::Lang;
pub use log::{Level, LogEvent, LogPattern, LogVolume};
pub use metric::{
    ChangePoint, MetricInfo, MetricType, RankedService, Sample, Series, SeriesShape, SeriesSummary, service_of,
    value_text,
};
pub use plan::{Call, Decision, Plan, Step, StepState};
pub use session::{
    AgentStep, Feedback, InvocationStatus, Judgement, Message, Role, Session, SessionKind, SessionRecord,
    SessionStatus, ToolInvocation,
};
pub use state::{Invocation, State, Topology};
pub use status::{Change, ChangeKind, ContainerStatus, KubeEvent, NodeStatus, PodStatus, Rollout, Workload};
pub use time::Window;
pub use tool::{Failure, FailureKind, Outcome, Output, Served, ToolSpec};

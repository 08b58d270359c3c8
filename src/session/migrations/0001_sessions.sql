-- The same text runs on SQLite and Postgres: BIGINT, DOUBLE PRECISION and TEXT only. Times are microseconds since 1970.

CREATE TABLE diagnosis_session (
    id TEXT PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL,
    route TEXT NOT NULL,
    status TEXT NOT NULL,
    status_reason TEXT,
    title TEXT NOT NULL,
    service TEXT,
    alert_fingerprint TEXT,
    lang TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT,
    reasoner TEXT,
    model TEXT,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    model_calls BIGINT NOT NULL,
    cost DOUBLE PRECISION,
    category TEXT,
    cause TEXT,
    cause_service TEXT,
    confidence DOUBLE PRECISION,
    -- Who works on it; a running session whose worker is silent was interrupted.
    host TEXT NOT NULL,
    pid BIGINT NOT NULL,
    heartbeat_at BIGINT NOT NULL,
    -- The diagnosis as JSON, once there is one.
    diagnosis TEXT
);

CREATE INDEX diagnosis_session_started ON diagnosis_session (started_at);
CREATE INDEX diagnosis_session_service ON diagnosis_session (service, started_at);
CREATE INDEX diagnosis_session_fingerprint ON diagnosis_session (alert_fingerprint, started_at);
CREATE INDEX diagnosis_session_status ON diagnosis_session (status, started_at);

CREATE TABLE agent_step (
    session_id TEXT NOT NULL REFERENCES diagnosis_session (id) ON DELETE CASCADE,
    step_order BIGINT NOT NULL,
    node TEXT NOT NULL,
    parent BIGINT,
    plan_step BIGINT,
    decision TEXT,
    reason TEXT,
    state_change TEXT,
    started_at BIGINT NOT NULL,
    milliseconds BIGINT,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    PRIMARY KEY (session_id, step_order)
);

CREATE TABLE tool_invocation (
    session_id TEXT NOT NULL REFERENCES diagnosis_session (id) ON DELETE CASCADE,
    id BIGINT NOT NULL,
    step BIGINT,
    tool TEXT NOT NULL,
    server TEXT NOT NULL,
    arguments TEXT NOT NULL,
    status TEXT NOT NULL,
    error TEXT,
    attempts BIGINT NOT NULL,
    served_by TEXT,
    started_at BIGINT NOT NULL,
    milliseconds BIGINT,
    output_preview TEXT,
    output_bytes BIGINT,
    findings BIGINT,
    truncated BIGINT NOT NULL,
    -- L0: what recall found. L1: what was left after reranking.
    l0_candidates BIGINT,
    l0_best_distance DOUBLE PRECISION,
    l0_best_text_score DOUBLE PRECISION,
    l1_kept BIGINT,
    l1_best_score DOUBLE PRECISION,
    l1_margin DOUBLE PRECISION,
    l1_verdict TEXT,
    PRIMARY KEY (session_id, id)
);

CREATE TABLE message (
    session_id TEXT NOT NULL REFERENCES diagnosis_session (id) ON DELETE CASCADE,
    message_order BIGINT NOT NULL,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (session_id, message_order)
);

CREATE TABLE feedback (
    id TEXT PRIMARY KEY NOT NULL,
    session_id TEXT NOT NULL REFERENCES diagnosis_session (id) ON DELETE CASCADE,
    judgement TEXT NOT NULL,
    cause TEXT,
    note TEXT,
    at BIGINT NOT NULL
);

CREATE INDEX feedback_session ON feedback (session_id);

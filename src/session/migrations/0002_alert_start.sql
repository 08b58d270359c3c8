-- When the alert began firing, by its sender's clock: the same firing diagnosed twice has not come twice.
ALTER TABLE diagnosis_session ADD COLUMN alert_started_at BIGINT;

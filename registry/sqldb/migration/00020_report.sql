-- +goose Up
-- What a report says of each job beside what it came to: the stage where it stands, what is known of why it failed and of what
-- puts it right, and what changed since the report before. '' in reports that were made before there was this.
ALTER TABLE report_job ADD COLUMN stage TEXT NOT NULL DEFAULT '';
ALTER TABLE report_job ADD COLUMN cause TEXT NOT NULL DEFAULT '';
ALTER TABLE report_job ADD COLUMN code TEXT NOT NULL DEFAULT '';
ALTER TABLE report_job ADD COLUMN remedy TEXT NOT NULL DEFAULT '';
ALTER TABLE report_job ADD COLUMN change TEXT NOT NULL DEFAULT '';

ALTER TABLE report ADD COLUMN stopped BIGINT NOT NULL DEFAULT 0;
ALTER TABLE report ADD COLUMN content BIGINT NOT NULL DEFAULT 0;
ALTER TABLE report ADD COLUMN since BIGINT NOT NULL DEFAULT 0; -- the closing of the report before; 0: the difference is not told
ALTER TABLE report ADD COLUMN now_completed BIGINT NOT NULL DEFAULT 0;
ALTER TABLE report ADD COLUMN still_failed BIGINT NOT NULL DEFAULT 0;
ALTER TABLE report ADD COLUMN newly_failed BIGINT NOT NULL DEFAULT 0;
ALTER TABLE report ADD COLUMN now_stopped BIGINT NOT NULL DEFAULT 0;
ALTER TABLE report ADD COLUMN new_jobs BIGINT NOT NULL DEFAULT 0;
UPDATE report SET
  stopped = (SELECT COUNT(*) FROM report_job j WHERE j.batch_id = report.batch_id AND j.closing = report.closing
    AND j.status IN ('cancelled', 'aborted', 'deleted')),
  content = (SELECT COUNT(*) FROM report_job j WHERE j.batch_id = report.batch_id AND j.closing = report.closing
    AND j.error_class = 'content');
-- A report that is being made: its rows are in report_job, and nobody sees them before it is in report. copied is the last of
-- them, seen the last event whose change is in them.
CREATE TABLE report_draft (
  batch_id TEXT NOT NULL,
  closing  BIGINT NOT NULL,
  copied   BIGINT NOT NULL,
  seen     BIGINT NOT NULL,
  PRIMARY KEY (batch_id, closing)
);

-- +goose Down
DROP TABLE report_draft;
DELETE FROM report_job WHERE NOT EXISTS (SELECT 1 FROM report r WHERE r.batch_id = report_job.batch_id AND r.closing = report_job.closing);
ALTER TABLE report DROP COLUMN new_jobs;
ALTER TABLE report DROP COLUMN now_stopped;
ALTER TABLE report DROP COLUMN newly_failed;
ALTER TABLE report DROP COLUMN still_failed;
ALTER TABLE report DROP COLUMN now_completed;
ALTER TABLE report DROP COLUMN since;
ALTER TABLE report DROP COLUMN content;
ALTER TABLE report DROP COLUMN stopped;
ALTER TABLE report_job DROP COLUMN change;
ALTER TABLE report_job DROP COLUMN remedy;
ALTER TABLE report_job DROP COLUMN code;
ALTER TABLE report_job DROP COLUMN cause;
ALTER TABLE report_job DROP COLUMN stage;

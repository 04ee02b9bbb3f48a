-- +goose Up
-- Jobs of a report that did not complete although their objects are preserved. It only adds: programs of the version before go on working, and
-- count these jobs as failed in the reports that they make.
ALTER TABLE report_job ADD COLUMN preserved BIGINT NOT NULL DEFAULT 0;
ALTER TABLE report ADD COLUMN preserved BIGINT NOT NULL DEFAULT 0;
-- What failed at its last step was recorded before.
UPDATE report_job SET preserved = 1 WHERE status = 'failed' AND stage = 'notify';
UPDATE report SET preserved = (SELECT COUNT(*) FROM report_job j WHERE j.batch_id = report.batch_id AND j.closing = report.closing AND j.preserved = 1);
UPDATE report SET failed = failed - preserved WHERE preserved > 0;

-- +goose Down
UPDATE report SET failed = failed + preserved WHERE preserved > 0;
ALTER TABLE report DROP COLUMN preserved;
ALTER TABLE report_job DROP COLUMN preserved;

-- +goose Up
-- row_no of a job is its manifest's line. ordinal is its place among the rows, counted from 1; 0 for jobs of programs of the version before,
-- which count no rows and go on working.
ALTER TABLE work_item ADD COLUMN ordinal BIGINT NOT NULL DEFAULT 0;
ALTER TABLE report_job ADD COLUMN ordinal BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE report_job DROP COLUMN ordinal;
ALTER TABLE work_item DROP COLUMN ordinal;

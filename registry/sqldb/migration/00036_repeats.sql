-- +goose Up
-- Jobs of a report whose rows repeat an earlier row of their batch. It only adds: programs of the version before go on working, and count none
-- in the reports that they make.
ALTER TABLE report_job ADD COLUMN repeats BIGINT NOT NULL DEFAULT 0;
ALTER TABLE report ADD COLUMN repeats BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE report DROP COLUMN repeats;
ALTER TABLE report_job DROP COLUMN repeats;

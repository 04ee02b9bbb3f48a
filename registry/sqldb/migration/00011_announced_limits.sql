-- +goose Up
-- How many items of a stage may run at once as its programs announced it; 0: any number. It holds
-- while most is 0.
ALTER TABLE work_limit ADD COLUMN announced BIGINT NOT NULL DEFAULT 0;

-- +goose Down
DELETE FROM work_limit WHERE most = 0 AND weight = 0;
ALTER TABLE work_limit DROP COLUMN announced;

-- +goose Up
-- The tasks that jobs' profiles made for them.
CREATE TABLE outside_step (
  task_id  TEXT PRIMARY KEY,
  job_id   TEXT NOT NULL,
  after    TEXT NOT NULL,   -- the stage that the job left
  blocking BIGINT NOT NULL, -- 1: the job's next stage waits for it
  -- 1: it was cancelled with its job, so it goes on with the job.
  stopped  BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX outside_step_job ON outside_step (job_id);

-- +goose Down
DROP TABLE outside_step;
